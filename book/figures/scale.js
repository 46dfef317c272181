// A row of scores that spreads as d_k grows, and its weights, raw and divided.
const { scores, widths, first } = data; // scores[draw][width][key]
const state = { draw: 0, width: first };
const keys = scores[0][0].map((_, j) => j);
const far = Math.ceil(Math.max(...scores.flat(2).map(Math.abs)) / 10) * 10;
const percent = (x) => `${50 + (50 * x) / far}%`;

const band = html("span", { class: "band" });
const ticks = keys.map(() => html("i"));
const strip = html("div", { class: "strip" }, band, ...ticks);
const weights = () => {
  const bars = keys.map(() => html("i"));
  const tops = bars.map((bar) => html("div", {}, html("small"), bar));
  return { bars, tops, node: html("div", { class: "bars" }, ...tops) };
};
const rows = { raw: weights(), divided: weights() };

// the task: one raw weight takes nearly all, in every draw, and what of the divided ones?
const tops = scores.map((draw) => Math.max(...softmax(draw.at(-1))));
const seen = new Set();

function fill({ bars, tops }, p) {
  const best = p.indexOf(Math.max(...p));
  p.forEach((weight, j) => {
    bars[j].style.height = `${100 * weight}%`;
    tops[j].firstChild.textContent = j === best ? show(weight) : "";
  });
  return [p[best], effective(p), best];
}

function draw() {
  const d = widths[state.width], s = scores[state.draw][state.width];
  const root_d = Math.sqrt(d);
  const raw = softmax(s), divided = softmax(s.map((x) => x / root_d));
  ticks.forEach((tick, j) => { tick.style.left = percent(s[j]); });
  band.style.left = percent(-root_d);
  band.style.width = `${(100 * root_d) / far}%`;
  const found = [fill(rows.raw, raw), fill(rows.divided, divided)];
  note("raw", raw);
  note("divided", divided);
  note("largest", found.map((f) => f[0]));
  note("effective", found.map((f) => f[1]));
  root.dataset.width = d;
  if (state.width === widths.length - 1) seen.add(state.draw);
  aim(seen.size === scores.length ? `At dₖ = ${widths.at(-1)} the largest raw weight is ${show(Math.min(...tops))} or more in ${tops.length > 1 ? `all ${tops.length} draws` : "this draw"}: it is the width, not luck.`
    : `Draws seen at dₖ = ${widths.at(-1)}: ${seen.size} of ${scores.length}.`, seen.size === scores.length);
  const [a, b] = found.map(([top, keys]) => `largest weight ${show(top)}, ${show(keys, 1)} effective keys`);
  say(`dₖ = ${d}. Raw: ${a}, key ${found[0][2] + 1} leads. Divided by ${show(root_d, 1)}: ${b}.`);
}

mount(`widen the vectors to the end. How much of the weight does one of the ${keys.length} keys get? Then look at ${scores.length > 1 ? "the other draws" : "the divided row"}: is it luck?`,
  html("div", { "aria-hidden": true },
    html("div", {}, `${keys.length} scores q · k; the band is ±√dₖ`), strip,
    html("div", { class: "ends" }, html("span", {}, show(-far, 0)), html("span", {}, "0"), html("span", {}, far)),
    html("div", {}, "weights, raw"), rows.raw.node,
    html("div", {}, "weights, scores divided by √dₖ"), rows.divided.node,
    html("div", { class: "bars names" }, ...keys.map((j) => html("span", {}, j + 1)))),
  slider("width dₖ", {
    min: 0, max: widths.length - 1, step: 1, value: first, say: (i) => `${widths[i]}`,
    input: (i) => { state.width = i; draw(); },
  }),
  scores.length > 1 ? choice("draw", scores.map((_, i) => [i, `${i + 1}`]), 0, (i) => { state.draw = i; draw(); }) : null,
);
draw();
