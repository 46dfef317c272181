// Bars that follow the scores and the temperature; a dashed line marks the start.
const { labels, scores } = data;
const start = { log: 0, all: 0, scores };
const state = { ...start, scores: [...scores] };
const columns = labels.map((label) => {
  const [share, bar, mark, scaled] = ["b", "i", "u", "span"].map((tag) => html(tag));
  const node = html("div", {}, html("div", { class: "room" }, mark, share, bar), html("span", {}, label), scaled);
  return { node, share, bar, mark, scaled };
});

function draw() {
  const T = 10 ** state.log;
  const scaled = state.scores.map((s) => (s + state.all) / T);
  const p = softmax(scaled);
  columns.forEach((column, j) => {
    column.share.textContent = show(p[j]);
    column.bar.style.height = `${100 * p[j]}%`;
    column.scaled.textContent = show(scaled[j], 1);
  });
  note("weights", p);
  note("effective", effective(p));
  const shares = labels.map((label, j) => `${word(label)} ${show(p[j])}`).join(", ");
  say(`${shares}: as if ${show(effective(p))} of ${p.length} shared equally.`);
}

const temperature = slider("temperature T", {
  min: -1, max: 1, step: 0.02, value: 0, say: (x) => show(10 ** x),
  input: (x) => { state.log = x; draw(); },
});
const all = slider("add to all scores", {
  min: -5, max: 5, step: 0.5, value: 0, say: (x) => show(x, 1),
  input: (x) => { state.all = x; draw(); },
});
const each = labels.map((label, j) => slider(`score of ${word(label)}`, {
  min: -5, max: 5, step: 0.1, value: scores[j], say: (x) => show(x, 1),
  input: (x) => { state.scores[j] = x; draw(); },
}));
const again = () => {
  temperature.set(0);
  all.set(0);
  each.forEach((one, j) => one.set(scores[j]));
};

mount(
  html("div", { class: "columns", "aria-hidden": true },
    html("div", { class: "names" }, html("div", { class: "room" }, "share"), html("span", {}, "key"), html("span", {}, "score / T")),
    ...columns.map(({ node }) => node)),
  temperature, all, ...each,
  html("button", { type: "button", onclick: again }, "back to the start"),
);
softmax(scores).forEach((share, j) => { columns[j].mark.style.bottom = `${100 * share}%`; });
draw();
