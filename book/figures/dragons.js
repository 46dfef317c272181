// Left: the weights of a head as a point of a triangle, to drag. Right: rings are nights,
// dots the best guesses from what the heads see.
const { nights, names } = data;
const start = data.looks, SIDE = 200, UNIT = 62;
const REACH = 1.03 * UNIT * Math.max(1, ...nights.map((s) => Math.max(Math.abs(s[0]), Math.abs(s[1]))));
const state = { m: 1, looks: structuredClone(start), best: { 1: 0, 2: 0 } };
const at = (x, y) => `${(x * UNIT).toFixed(1)} ${(-y * UNIT).toFixed(1)}`;
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const moments = [0, 1, 2].map((a) => [0, 1, 2].map((b) =>
  nights.reduce((sum, s) => sum + s[a] * s[b], 0) / nights.length));

// least squares: from the averages z = A s, the matrix with which z comes closest to s
function fit(A) {
  const C = A.map((row) => moments[0].map((_, j) => dot(row, moments.map((line) => line[j]))));
  const G = A.map((row, r) => A.map((other) => dot(C[r], other)));
  if (A.length === 1) return { rank: 1, B: [C[0].map((c) => c / G[0][0])], C };
  const det = G[0][0] * G[1][1] - G[0][1] * G[1][0];
  if (det < 1e-9) return fit(A.slice(0, 1)); // equal heads: one average
  const B = [0, 1].map((r) => C[0].map((_, j) =>
    (G[1 - r][1 - r] * C[r][j] - G[0][1] * C[1 - r][j]) / det));
  return { rank: 2, B, C };
}

// the cloud: names of the axes stand outside of it, what the marks mean above it
const cloud = svg("svg", { viewBox: `${-REACH - 4} ${-REACH - 4} ${2 * REACH + 8} ${2 * REACH + 8}`, "aria-hidden": true });
const path = (name, d = "") => cloud.appendChild(svg("path", { class: name, d }));
path("grid", `M${-REACH} 0H${REACH}M0 ${-REACH}V${REACH}`);
path("night", nights.map((s) => `M${at(s[0], s[1])}m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0`).join(""));
const [miss, guess] = [path("miss"), path("guess")];
const legend = html("div", { class: "legend" }, html("span", { class: "ring" }), "a night", html("span", { class: "dot" }), "best guess from the head output");

// the triangle of weights: right corner all to the first, top all to the second, else to the third
const [first, second, third] = names;
const paper = svg("svg", { viewBox: `-68 -30 ${SIDE + 138} ${SIDE + 58}` },
  svg("path", { class: "edge", d: `M0 ${SIDE}H${SIDE}L0 0Z` }),
  svg("text", { x: 0, y: -14, "text-anchor": "middle" }, `all to ${cut(second, 16)}`),
  svg("text", { x: SIDE, y: SIDE + 22, "text-anchor": "middle" }, `all to ${cut(first, 16)}`),
  svg("text", { x: 0, y: SIDE + 22, "text-anchor": "middle" }, `all to ${cut(third, 9)}`));

// keep a tip in the triangle, on a grid of hundredths
function inside([x, y]) {
  const over = Math.max(0, x + y - 1) / 2;
  x = Math.round(100 * clamp(x - over, 0, 1)) / 100;
  return [x, Math.round(100 * clamp(y - over, 0, 1 - x)) / 100];
}
const heads = [0, 1].map((r) => {
  const tip = svg("g", {}, svg("circle", { class: "hit", r: 18 }), svg("circle", { class: "tip", r: 12 }),
    svg("text", { y: 5, "text-anchor": "middle" }, r + 1));
  handle(tip, {
    label: `head ${r + 1}: weights of ${first} and ${second}`, step: 0.02, get: () => state.looks[r],
    set: (point) => { state.looks[r] = inside(point); draw(); },
    toData: (event) => { const [x, y] = spot(event, paper); return [x / SIDE, 1 - y / SIDE]; },
  });
  // the slider sets the first weight; the second gives way, and then the third
  const share = slider(`head ${r + 1}: weight of ${first}`, {
    min: 0, max: 1, step: 0.01, value: start[r][0], input(x) {
      const [a, b] = state.looks[r];
      state.looks[r] = [x, Math.min(Math.max(0, a + b - x), 1 - x)];
      tip.tell();
      draw();
    },
  });
  return { tip, share };
});
paper.append(...heads.map(({ tip }) => tip).reverse());

const meter = (label) => {
  const [bar, track, output] = [html("i"), html("div"), html("output")];
  track.append(bar);
  return { bar, track, output, node: html("div", { class: "dial meter" }, html("span", {}, label), track, output) };
};
const each = names.map((name) => meter(`R² ${name}`)), both = meter("R² of both");
both.node.classList.add("both");
const mark = both.track.appendChild(html("u"));

function draw() {
  const A = state.looks.slice(0, state.m).map(([a, b]) => [a, b, Math.max(0, 1 - a - b)]);
  const { rank, B, C } = fit(A);
  const known = moments.map((line, j) => dot(B.map((row) => row[j]), B.map((_, r) => C[r][j])) / line[j]);
  const r2 = (known[0] * moments[0][0] + known[1] * moments[1][1]) / (moments[0][0] + moments[1][1]);
  const bound = state.m / 2;
  const guesses = nights.map((s) => {
    const z = A.slice(0, rank).map((row) => dot(row, s));
    return [0, 1].map((j) => dot(z, B.map((row) => row[j])));
  });
  guess.setAttribute("d", guesses.map(([x, y]) => `M${at(x, y)}h0`).join(""));
  miss.setAttribute("d", guesses.map(([x, y], k) => `M${at(x, y)}L${at(nights[k][0], nights[k][1])}`).join(""));
  heads.forEach(({ tip, share }, r) => {
    const [a, b] = state.looks[r], used = r < state.m;
    tip.setAttribute("display", used ? "inline" : "none");
    tip.setAttribute("transform", `translate(${a * SIDE} ${(1 - b) * SIDE})`);
    share.classList.toggle("off", !used);
    share.show(a);
  });
  [...each, both].forEach(({ bar, output }, j) => {
    const value = j < 3 ? known[j] : r2;
    bar.style.width = `${100 * clamp(value, 0, 1)}%`;
    output.textContent = show(value);
  });
  mark.style.left = `calc(${100 * bound}% - 1px)`;
  state.best[state.m] = Math.max(state.best[state.m], r2);
  note("looks", A);
  note("known", known);
  note("r2", r2);
  note("best", state.best[state.m]);
  Object.assign(root.dataset, { heads: state.m, rank });
  aim(r2 > 0.505 ? `Two heads: ${show(r2)}. One head never passes 0.50, wherever its point lies.`
    : `Largest so far: ${show(state.best[state.m])} with ${state.m === 1 ? "one head" : "two heads"}. The dashed bound is ${show(bound)}.`, r2 > 0.505);
  const given = A.map((row, r) => `Head ${r + 1} gives ${row.map((w, j) => `${show(w)} to ${names[j]}`).slice(0, row[2] > 0.001 ? 3 : 2).join(", ")}.`);
  const largest = Math.max(...B.map((row) => Math.max(...row.slice(0, 2).map(Math.abs))));
  say(`${given.join(" ")} R² of both is ${show(r2)}. ` + (state.m === 1 ? ""
    : rank === 1 ? "The heads are equal: one average." : `To take the averages apart, W_O needs numbers up to ${show(largest, 1)}.`));
}

mount(`with one head, find the point at which R² of both (${first} and ${second}) is above 0.50. If you give up, take two heads.`,
  choice("heads", [[1, "one"], [2, "two"]], 1, (m) => { state.m = m; draw(); }),
  html("div", { class: "scene" },
    html("div", {}, html("div", { class: "title" }, "attention weights: drag the point"), paper),
    html("div", {}, html("div", { class: "title" }, `${first} glow →, ${second} glow ↑`), legend, cloud)),
  html("div", { class: "meters" }, html("div", {}, ...heads.map(({ share }) => share)),
    html("div", {}, ...each.map(({ node }) => node), both.node)));
draw();
