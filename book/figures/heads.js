// A table is cut into heads. A number is known by its place p on the tape, row by row.
const { cells, words, counts, first } = data;
const n = cells.length, d = cells[0].length;
const places = cells.flatMap((row, i) => row.map((_, c) => i * d + c));
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#C5679B", "#9B7A00", "#3B8FC2", "#8C6D1F", "#808080"];
const state = { way: "swap", h: first, p: 0 };
const width = () => d / state.h;

// [head, row, column] of a number: after reshape (n, h, d_k) and swap, or after reshape (h, n, d_k)
const right = (p) => [Math.floor((p % d) / width()), Math.floor(p / d), p % width()];
const wrong = (p) => [Math.floor(p / (n * width())), Math.floor(p / width()) % n, p % width()];
const goes = (p) => (state.way === "reshape" ? wrong : right)(p);
const text = (p) => cells.flat()[p] + (state.way === "input" ? "′" : "");
const lost = (p) => `${goes(p)}` !== `${right(p)}`;
const cell = (tag, p, attributes) => html(tag, {
  class: `cell${lost(p) ? " lost" : ""}${p === state.p ? " on" : ""}`,
  style: `--head: ${COLOURS[right(p)[0]]}`, onclick: () => pick(p), ...attributes,
}, text(p));

const buttons = places.map((p) => html("button", { type: "button", class: "cell", onclick: () => pick(p) }));
const groups_ = html("tr"), caption = html("caption");
const boxes = buttons.map((button) => html("td", {}, button));
const table = html("table", { class: "whole" }, caption, groups_,
  ...words.map((name, i) => html("tr", {}, html("th", { scope: "row" }, name), ...boxes.slice(i * d, (i + 1) * d))));
const features = places.map(() => html("i"));
const origin = html("div", { "aria-hidden": true }, html("div", {}, "X"),
  html("div", { class: "words", style: `grid-template-columns: repeat(${d}, 14px)` }, ...features));
const tape = html("div", { class: "tape" });
const line = html("div", { "aria-hidden": true }, "The tape. Above: made for this head. Below: comes to this head.", tape);
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
  caption.textContent = way === "input" ? "pieces of X, each times a W of its own" : "X W, columns by head";
  groups_.replaceChildren(html("td"), ...Array.from({ length: h }, (_, r) =>
    html("th", { scope: "colgroup", colspan: k, class: "group" }, `${k * 28 < 50 ? "" : "head "}${r}`)));
  buttons.forEach((button, q) => {
    button.textContent = text(q);
    button.style.setProperty("--head", COLOURS[right(q)[0]]);
    button.setAttribute("aria-pressed", q === p);
    button.setAttribute("aria-label", `${text(q)}: ${words[right(q)[1]]}, column ${q % d}`);
    boxes[q].className = right(q)[2] ? "" : "first";
  });
  line.hidden = way === "input";
  tape.replaceChildren(...places.map((q) => html("span", {},
    `${right(q)[0]}`, cell("span", q), `${goes(q)[0]}`)));
  const heads = Array.from({ length: h }, () => words.map(() => []));
  places.forEach((q) => { const [a, b, e] = goes(q); heads[a][b][e] = q; });
  result.replaceChildren(...heads.map((rows, a) => html("table", {}, html("caption", {}, `head ${a}`),
    ...rows.map((line, b) => html("tr", {}, html("th", { scope: "row" }, words[b]),
      ...line.map((q) => html("td", {}, cell("span", q))))))));

  const sum = way === "input"
    ? `head ${r} [${i}, ${c}] = Σ X[${i}, a] · W_${r}[a − ${from[0]}, ${c}]` : `X W [${row}, ${p % d}] = Σ X[${row}, a] · W[a, ${p % d}]`;
  const over = `${sum} over a = ${from[0]}${from[1] - from[0] > 1 ? ` … ${from[1] - 1}` : ""}`;
  const address = `place ${row}·${d} + ${p % d} = ${p} on the tape`;
  steps.replaceChildren(...{
    swap: [over, address, `reshape (${n}, ${h}, ${k}): [${row}, ${owner}, ${column}], since ${p % d} = ${owner}·${k} + ${column}`,
      `swap (${h}, ${n}, ${k}): [${r}, ${i}, ${c}]`],
    reshape: [over, address, `reshape (${h}, ${n}, ${k}): [${r}, ${i}, ${c}], since ${p} = (${r}·${n} + ${i})·${k} + ${c}`],
    input: [`reshape and swap X (${h}, ${n}, ${k}), then times W_${r} of shape (${k}, ${k})`, over],
  }[way].map((line) => html("div", {}, line)));

  const held = places.filter((q) => !lost(q)).length;
  const strays = places.filter((q) => goes(q)[0] !== right(q)[0]).length;
  note("heads", heads);
  Object.assign(root.dataset, { way, n_heads: h, place: p, index: `${r} ${i} ${c}`, held, strays, sees: from[1] - from[0] });
  say(way === "input"
    ? `${text(p)} stands in its place, but it is made from ${from[1] - from[0]} of ${d} features of ${word(words[row])}.`
    : `${text(p)}, made for head ${owner} from ${word(words[row])}, comes to head ${r}${i === row ? "" : ` and is taken for ${word(words[i])}`}. `
      + `${held} of ${places.length} numbers are in their place, ${strays} in a wrong head.`);
}

const stop = arrows(buttons, d, pick);
mount(
  choice("cut", [["swap", "reshape and swap"], ["reshape", "reshape only"], ["input", "cut the input"]], "swap", (way) => { state.way = way; draw(); }),
  choice("heads", counts.map((h) => [h, `${h}`]), first, (h) => { state.h = h; draw(); }),
  html("div", { class: "stage" }, origin, table),
  line,
  result, steps,
);
draw();
