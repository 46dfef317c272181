// Two positions on one clock for each hand: only the angle between them enters the dot product.
const { width, first, most } = data;
const speeds = Array.from({ length: width / 2 }, (_, i) => 10000 ** ((-2 * i) / width));
const state = { t: first[0], k: first[1] };
const sum = (k) => speeds.reduce((total, w) => total + Math.cos(k * w), 0);
const curve = Array.from({ length: most[1] + 1 }, (_, k) => sum(k));
const tip = (angle, r) => [r * Math.sin(angle), -r * Math.cos(angle)];

const dials = speeds.map((speed, i) => {
  const hand = (kind) => svg("line", { class: kind, x1: 0, y1: 0 });
  const t = hand("one"), s = hand("two"), wedge = svg("path", { class: "wedge" });
  const value = html("output", {});
  const node = html("div", {}, html("span", {}, `hand ${i + 1}`),
    svg("svg", { viewBox: "-22 -22 44 44" }, wedge, svg("circle", { class: "face", r: 20 }), s, t), value);
  return { speed, t, s, wedge, value, node };
});

// the dot product against the offset
const W = 330, H = 110, low = Math.min(0, ...curve);
const x = (k) => 26 + (k / most[1]) * (W - 40);
const y = (v) => 12 + ((curve[0] - v) / (curve[0] - low)) * (H - 36);
const spot_ = svg("circle", { class: "spot", r: 6 });
const chart = svg("svg", { class: "chart", viewBox: `0 0 ${W} ${H}` },
  svg("path", { class: "axis", d: `M${x(0)} ${y(0)}H${x(most[1])}` }),
  svg("path", { class: "curve", d: `M${curve.map((v, k) => `${x(k)} ${y(v)}`).join("L")}` }),
  ...[0, most[1] / 4, most[1] / 2, (3 * most[1]) / 4, most[1]].map((k) =>
    svg("text", { x: x(k), y: H - 2, "text-anchor": "middle" }, `${k}`)),
  ...[curve[0], 0].map((v) => svg("text", { x: 20, y: y(v) + 4, "text-anchor": "end" }, `${v}`)),
  spot_);

// the task: a rise of the dot product with the offset, seen at both offsets
const tried = new Set();
const rise = () => {
  const ks = [...tried].filter((k) => k > 0).sort((a, b) => a - b);
  for (const a of ks) for (const b of ks) if (b > a && curve[b] > curve[a] + 0.005) return [a, b];
  return null;
};

function draw() {
  const { t, k } = state, s = t + k;
  for (const { speed, t: one, s: two, wedge, value } of dials) {
    const [a, b] = [t * speed, s * speed];
    for (const [line, angle, r] of [[one, a, 18], [two, b, 18]]) {
      const [px, py] = tip(angle, r);
      line.setAttribute("x2", px);
      line.setAttribute("y2", py);
    }
    const turn = (k * speed) % (2 * Math.PI), [ax, ay] = tip(a, 11), [bx, by] = tip(a + turn, 11);
    wedge.setAttribute("d", `M0 0L${ax} ${ay}A11 11 0 ${turn > Math.PI ? 1 : 0} 1 ${bx} ${by}Z`);
    value.textContent = show(Math.cos(k * speed));
  }
  spot_.setAttribute("cx", x(k));
  spot_.setAttribute("cy", y(curve[k]));
  tried.add(k);
  note("cosines", speeds.map((speed) => Math.cos(k * speed)));
  note("dot", [curve[k]]);
  Object.assign(root.dataset, { t, s });
  const found = rise();
  aim(found ? `The dot product is ${show(curve[found[0]])} at offset ${found[0]} and ${show(curve[found[1]])} at offset ${found[1]}: it does not fall steadily.`
    : "Not yet: so far the farther pair always had the smaller dot product.", found !== null);
  say(`Positions ${t} and ${s}, offset ${k}: the ${speeds.length} cosines add up to ${show(curve[k])}, the dot product of the two rows.`);
}

mount("move the first position. The hands turn, but which numbers change? Then find a pair that is farther apart than another pair and has the larger dot product.",
  slider("position t", { min: 0, max: most[0], step: 1, value: state.t, say: (v) => `${v}`, input: (v) => { state.t = v; draw(); } }),
  slider("offset", { min: 0, max: most[1], step: 1, value: state.k, say: (v) => `${v}`, input: (v) => { state.k = v; draw(); } }),
  html("div", { class: "key", "aria-hidden": true }, html("span", { class: "one" }, "position t"), html("span", { class: "two" }, "position t + offset"), "grey: the angle between them; below: its cosine"),
  html("div", { class: "dials", "aria-hidden": true }, ...dials.map((dial) => dial.node)),
  html("div", { "aria-hidden": true }, html("div", {}, "dot product, by offset"), chart),
);
draw();
