// One row for each word: its score, its weight and its value; below them the output.
const { divisor, features, labels, moved, query, scores, values } = data;
const s = [...scores], most = 10, widest = Math.max(...values.flat());
const bar = (kind) => {
  const [fill, text] = [html("i"), html("b")];
  const node = html("div", { class: `room ${kind}` }, fill, text);
  node.set = (part, words) => {
    fill.style.width = text.style.left = `${100 * part}%`;
    text.classList.toggle("inside", part > 0.5);
    text.textContent = words;
  };
  return node;
};

const rows = labels.map((label, j) => {
  const [score, weight] = [bar("score"), bar("weight")];
  const name = html(j === moved ? "label" : "div", { class: "name" }, label);
  if (j === moved) {
    const range = html("input", { type: "range", min: 0, max: most, step: 0.5, value: s[j],
      "aria-label": `score of ${word(label)}`, oninput: () => { s[j] = +range.value; draw(); } });
    score.append(html("u"), range);
    score.classList.add("moves");
  }
  const value = html("div", { class: "value", "aria-hidden": true }, values[j].map((x) => show(x, 0)).join(", "));
  return { score, weight, node: html("div", { class: "entry" }, name, score, weight, value) };
});
const outputs = features.map((name) => ({ name, bar: bar("output") }));

// the task: the same weight as the word that leads at first
const rival = scores.indexOf(Math.max(...scores));

function draw() {
  const A = softmax(s.map((x) => x / divisor));
  const y = features.map((_, c) => A.reduce((sum, a, j) => sum + a * values[j][c], 0));
  rows.forEach(({ score, weight }, j) => {
    score.set(s[j] / most, show(s[j], s[j] % 1 ? 1 : 0));
    weight.set(A[j], show(A[j], 3));
  });
  outputs.forEach(({ bar }, c) => bar.set(y[c] / widest, show(y[c])));
  const range = rows[moved].score.querySelector("input");
  range.setAttribute("aria-valuetext", show(s[moved], 1));
  rows[moved].score.querySelector("u").style.left = `${(100 * s[moved]) / most}%`;
  note("weights", A);
  note("output", y);
  const equal = s[moved] === s[rival];
  aim(equal ? `Both have the weight ${show(A[moved], 3)}, because their scores are equal.`
    : `${word(labels[moved])} has the weight ${show(A[moved], 3)}, ${word(labels[rival])} has ${show(A[rival], 3)}.`, equal);
  const listed = labels.map((label, j) => `${word(label)} ${show(A[j], 3)}`).join(", ");
  say(`Weights: ${listed}. Output of ${word(query)}: ${features.map((name, c) => `${show(y[c])} ${name}`).join(", ")}.`);
}

mount(`drag the end of the score of ${word(labels[moved])} until its weight equals that of ${word(labels[rival])}.`,
  html("div", { class: "entry head", "aria-hidden": true }, html("div"), html("div", {}, "score"),
    html("div", {}, "attention weight"), html("div", {}, "value")),
  ...rows.map(({ node }) => node),
  html("div", { class: "sum", "aria-hidden": true }, html("div", { class: "head" }, `output of ${word(query)}: the weighted average of the values`),
    ...outputs.map(({ name, bar }) => html("div", { class: "out" }, html("span", {}, name), bar))),
  html("button", { type: "button", onclick: () => {
    rows[moved].score.querySelector("input").value = s[moved] = scores[moved];
    draw();
  } }, "back to the start"),
);
draw();
