// A table is cut into heads. A number is known by its place p on the tape, row by row.
// Colours and digits say for which head it was made; the colour of mistakes, that it is lost.
const { cells, words, counts, first } = data;
const n = cells.length, d = cells[0].length;
const places = cells.flatMap((row, i) => row.map((_, c) => i * d + c));
const state = { way: "swap", h: first, p: Math.min(d, places.length - 1) };
const width = () => d / state.h;
const seen = new Set();

// [head, row, column] of a number: after reshape (n, h, d_k) and swap, or after reshape (h, n, d_k)
const right = (p) => [Math.floor((p % d) / width()), Math.floor(p / d), p % width()];
const wrong = (p) => [Math.floor(p / (n * width())), Math.floor(p / width()) % n, p % width()];
const goes = (p) => (state.way === "reshape" ? wrong : right)(p);
const text = (p) => cells.flat()[p] + (state.way === "input" ? "′" : "");
const lost = (p) => `${goes(p)}` !== `${right(p)}`;
const HUES = ["weight", "amber", "olive", "muted"]; // none of a query, a key or a value
const shade = (p) => `--head: var(--mha-${HUES[right(p)[0] % HUES.length]})`;
const cell = (p, from = "") => html("span", {
  class: `cell${lost(p) ? " lost" : ""}${p === state.p ? " on" : ""}${from}`, style: shade(p), onclick: () => pick(p),
}, text(p));

const buttons = places.map((p) => html("button", { type: "button", class: "cell", onclick: () => pick(p) }));
const groups_ = html("tr"), caption = html("caption");
const boxes = buttons.map((button) => html("td", {}, button));
const table = html("table", { class: "whole" }, caption, groups_,
  ...words.map((name, i) => html("tr", {}, html("th", { scope: "row" }, name), ...boxes.slice(i * d, (i + 1) * d))));
const features = places.map(() => html("i"));
const origin = html("div", { "aria-hidden": true }, html("div", {}, "made from these numbers of X"),
  html("div", { class: "words", style: `grid-template-columns: repeat(${d}, 14px)` }, ...features));
const tape = html("div", { class: "tape" });
const line = html("div", { class: "line", "aria-hidden": true }, html("div", {}, "as it lies in memory, row after row"), tape);
const result = html("div", { class: "stage" }), steps = html("div", { class: "steps" });

function pick(p) {
  state.p = p;
  stop(p);
  draw();
}

function draw() {
  const { way, h, p } = state, k = width();
  const [r, i, c] = goes(p), [owner, row, column] = right(p);
  const from = way === "input" ? [owner * k, (owner + 1) * k] : [0, d];
  features.forEach((node, q) => node.classList.toggle("on",
    Math.floor(q / d) === row && q % d >= from[0] && q % d < from[1]));
  caption.textContent = way === "input" ? "pieces of X, each times a small W" : "X W, columns by head";
  groups_.replaceChildren(html("td"), ...Array.from({ length: h }, (_, r) =>
    html("th", { scope: "colgroup", colspan: k, class: "group" }, `${k * 28 < 50 ? "" : "head "}${r + 1}`)));
  buttons.forEach((button, q) => {
    button.textContent = text(q);
    button.style = shade(q);
    button.setAttribute("aria-pressed", q === p);
    button.setAttribute("aria-label", `${text(q)}: ${words[right(q)[1]]}, column ${q % d}`);
    boxes[q].className = right(q)[2] ? "" : "first";
  });
  line.classList.toggle("none", way === "input");
  tape.replaceChildren(...places.map((q) => cell(q, q % d ? "" : " first")));
  const heads = Array.from({ length: h }, () => words.map(() => []));
  places.forEach((q) => { const [a, b, e] = goes(q); heads[a][b][e] = q; });
  result.replaceChildren(...heads.map((rows, a) => html("table", {}, html("caption", {}, `lands in head ${a + 1}`),
    ...rows.map((line, b) => html("tr", {}, html("th", { scope: "row" }, words[b]),
      ...line.map((q) => html("td", {}, cell(q))))))));

  const where = `place ${row}·${d} + ${p % d} = ${p}`;
  steps.textContent = {
    swap: `X W [${row}, ${p % d}] → ${where} → reshape (${n}, ${h}, ${k}): [${row}, ${owner}, ${column}] → swap (${h}, ${n}, ${k}): [${r}, ${i}, ${c}]`,
    reshape: `X W [${row}, ${p % d}] → ${where} → reshape (${h}, ${n}, ${k}): [${r}, ${i}, ${c}]`,
    input: `X → reshape and swap (${h}, ${n}, ${k}) → times W of head ${r + 1}, (${k}, ${k}): [${r}, ${i}, ${c}]`,
  }[way];

  const held = places.filter((q) => !lost(q)).length;
  const strays = places.filter((q) => goes(q)[0] !== right(q)[0]).length;
  note("heads", heads);
  Object.assign(root.dataset, { place: p, held });
  if (way === "reshape") seen.add(h);
  const others = counts.filter((h) => h > 1).length;
  const done = [...seen].filter((h) => h > 1).length >= Math.min(2, others);
  aim(way === "reshape" ? `With ${h} ${h === 1 ? "head" : "heads"} ${held} of ${places.length} are in the right place.${others > 1 && !done ? " And with another number of heads?" : ""}`
    : "Choose “reshape only” once you have a guess.", done && way === "reshape");
  say(way === "input"
    ? `${text(p)} is in its place, but it is made from ${from[1] - from[0]} of ${d} features of ${word(words[row])}.`
    : `${text(p)}, made for head ${owner + 1} from ${word(words[row])}, lands in head ${r + 1}${i === row ? "" : ` and is taken for ${word(words[i])}`}. `
      + `${held} of ${places.length} numbers are in the right place, ${places.length - held - strays} elsewhere in the right head, ${strays} in a wrong head.`);
}

const stop = arrows(buttons, d, pick);
mount(`leave out the swap (“reshape only”). How many of the ${places.length} numbers still end up in the right head and row? Guess first.`,
  choice("cut", [["swap", "reshape and swap"], ["reshape", "reshape only"], ["input", "cut the input"]], "swap", (way) => { state.way = way; draw(); }),
  choice("heads", counts.map((h) => [h, `${h}`]), first, (h) => { state.h = h; draw(); }),
  html("div", { class: "stage" }, table, origin),
  line, result, steps,
);
draw();
