// One row for each word: its score to move, and its share; a mark stays at the start.
const { labels, scores } = data;
const state = { log: 0, all: 0, scores: [...scores] };
const rows = labels.map((label, j) => {
  const [bar, mark, share, scaled] = ["i", "u", "b", "span"].map((tag) => html(tag));
  const move = slider(label, {
    min: -5, max: 5, step: 0.1, value: scores[j], say: (x) => show(x, 1),
    input: (x) => { state.scores[j] = x; draw(); },
  });
  move.querySelector("input").setAttribute("aria-label", `score of ${word(label)}`);
  return { bar, mark, share, scaled, move, node: html("div", { class: "row" }, move,
    html("div", { class: "result", "aria-hidden": true }, scaled, html("div", { class: "room" }, bar, mark, share))) };
});

// the task: what does heat do to the word in second place? It may have a best temperature
const shares = (log) => softmax(scores.map((s) => s / 10 ** log));
const second = scores.map((s, j) => [s, j]).sort((a, b) => b[0] - a[0])[Math.min(1, scores.length - 1)][1];
const grid = Array.from({ length: 101 }, (_, k) => -1 + k / 50);
const most = Math.max(...grid.map((log) => shares(log)[second]));
const warmest = grid.find((log) => shares(log)[second] === most);
const peaks = Math.abs(warmest) < 0.9;

function draw() {
  const T = 10 ** state.log;
  const scaled = state.scores.map((s) => (s + state.all) / T);
  const p = softmax(scaled);
  rows.forEach((row, j) => {
    row.share.textContent = share(p[j]);
    row.share.style.left = row.bar.style.width = `${100 * p[j]}%`;
    row.share.classList.toggle("inside", p[j] > 0.75);
    row.scaled.textContent = show(scaled[j], 1);
  });
  note("weights", p);
  const given = state.scores.every((s, j) => s === scores[j]);
  if (peaks) aim(given && p[second] > most - 0.0005
    ? `T ≈ ${show(T, 1)} gives ${word(labels[second])} its most, ${show(most)}; colder helps the first, hotter helps all others.`
    : `${word(labels[second])} has ${share(p[second])} at T = ${show(T)}.`, given && p[second] > most - 0.0005);
  else aim(Math.max(...p) - Math.min(...p) < 0.1 ? "Heat makes all weights equal." : `The weights differ by ${show(Math.max(...p) - Math.min(...p))}.`,
    Math.max(...p) - Math.min(...p) < 0.1);
  const listed = labels.map((label, j) => `${word(label)} ${share(p[j])}`).join(", ");
  say(`${listed}.`);
}

const temperature = slider("temperature T", {
  min: -1, max: 1, step: 0.02, value: 0, say: (x) => show(10 ** x),
  input: (x) => { state.log = x; draw(); },
});
const all = slider("add to all scores", {
  min: -5, max: 5, step: 0.5, value: 0, say: (x) => show(x, 1),
  input: (x) => { state.all = x; draw(); },
});
const again = () => {
  temperature.set(0);
  all.set(0);
  rows.forEach(({ move }, j) => move.set(scores[j]));
};

mount(peaks
  ? `move only the temperature. Where does ${word(labels[second])}, which is in second place, get its largest weight?`
  : "move only the temperature until no two weights differ by 0.1 or more.",
  html("div", { class: "row head", "aria-hidden": true }, html("div", {}, "score s"),
    html("div", { class: "result" }, html("span", {}, "s / T"), html("div", {}, "weight"))),
  ...rows.map(({ node }) => node), html("div", { class: "common" }, temperature, all),
  html("button", { type: "button", onclick: again }, "back to the start"),
);
softmax(scores).forEach((share, j) => { rows[j].mark.style.left = `${100 * share}%`; });
draw();
