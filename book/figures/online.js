// One query reads its keys block by block; three numbers are all it keeps.
const { labels, scores, values, block } = data;
const n = scores.length, W = 460, H = 150, wide = W / n;
const state = { size: block, read: 0, rescale: "yes" };
const bars = scores.map((_, j) => svg("rect", { x: j * wide + wide * 0.15, width: wide * 0.7, fill: "var(--key)" }));
const marks = scores.map((_, j) => svg("text", { x: (j + 0.5) * wide, "text-anchor": "middle", "font-size": 11 }));
const edges = svg("g", { stroke: "currentColor", "stroke-dasharray": "3 3" });
const picture = svg("svg", { viewBox: `0 -18 ${W} ${H + 54}`, "aria-hidden": true },
  svg("path", { d: `M0 ${H}H${W}`, stroke: "currentColor" }), edges, ...bars, ...marks,
  ...labels.map((label, j) => svg("text", { x: (j + 0.5) * wide, y: H + 16, "text-anchor": "middle" }, cut(label, Math.max(3, Math.floor(wide / 7))))),
  ...scores.map((s, j) => svg("text", { x: (j + 0.5) * wide, y: H + 33, "text-anchor": "middle" }, show(s, 1))));
const row = (name) => { const td = html("td", {}); return [td, html("tr", {}, html("th", { scope: "row" }, name), td)]; };
const [top, topRow] = row("m, the largest score so far");
const [sum, sumRow] = row("ℓ, the sum of exp(s − m)");
const [answer, answerRow] = row("o / ℓ, the answer so far");
const blocks = () => Math.ceil(n / state.size);

// what the query keeps after `count` blocks, and the last factor for the old sums
function keep(count) {
  let m = -Infinity, l = 0, o = 0, factor = 1;
  for (let k = 0; k < count; k++) {
    const part = scores.slice(k * state.size, (k + 1) * state.size);
    const larger = Math.max(m, ...part);
    factor = k === 0 ? 1 : state.rescale === "yes" ? Math.exp(m - larger) : 1;
    l *= factor;
    o *= factor;
    part.forEach((s, i) => {
      l += Math.exp(s - larger);
      o += Math.exp(s - larger) * values[k * state.size + i];
    });
    m = larger;
  }
  return { m, l, o: l ? o / l : 0, factor };
}

function draw() {
  const { m, l, o, factor } = keep(state.read);
  const seen = Math.min(n, state.read * state.size);
  scores.forEach((s, j) => {
    const tall = j < seen ? Math.exp(s - m) : 0;
    bars[j].setAttribute("y", H - tall * H);
    bars[j].setAttribute("height", tall * H);
    marks[j].setAttribute("y", H - tall * H - 4);
    marks[j].textContent = j < seen ? show(tall) : "";
  });
  edges.replaceChildren(...Array.from({ length: blocks() - 1 }, (_, k) =>
    svg("path", { d: `M${(k + 1) * state.size * wide} 0V${H}` })));
  [top.textContent, sum.textContent, answer.textContent] = seen ? [show(m, 1), show(l), show(o)] : ["−∞", "0", "–"];
  const whole = softmax(scores).reduce((all, p, j) => all + p * values[j], 0);
  note("kept", seen ? [m, l, o] : []);
  say(!seen ? "Nothing is read yet." : `After ${seen} of ${n} keys` +
    (state.read > 1 ? `: the old sums were multiplied by ${show(factor)}` : "") +
    (seen < n ? "." : `. The answer is ${show(o)}; the softmax over all keys at once gives ${show(whole)}.`));
}
const reader = slider("blocks read", { min: 0, max: blocks(), step: 1, value: 0, say: (x) => `${show(x, 0)} of ${blocks()}`,
  input: (x) => { state.read = x; draw(); } });
const sizes = choice("keys in a block", [1, 2, 3, n].map((k) => [k, k === n ? "all" : k]), block, (k) => {
  state.size = k;
  reader.querySelector("input").max = blocks();
  reader.set(Math.min(state.read, blocks()));
});
const fix = choice("rescale the old sums", [["yes", "yes"], ["no", "forget it"]], "yes", (key) => { state.rescale = key; draw(); });
mount(picture, reader, sizes, fix, html("table", {}, topRow, sumRow, answerRow));
draw();
