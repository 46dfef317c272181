// Rings are nights, dots the best guesses. The tip of a head's weights (left, right) is
// dragged in a triangle: on its long side all goes to the dragons, at the origin to the sheep.
const { nights, names } = data;
const start = data.looks, UNIT = 62;
const REACH = 1.03 * UNIT * Math.max(1, ...nights.map((s) => Math.max(Math.abs(s[0]), Math.abs(s[1]))));
const state = { m: 1, looks: structuredClone(start), best: { 1: 0, 2: 0 } };
const at = (x, y) => `${(x * UNIT).toFixed(1)} ${(-y * UNIT).toFixed(1)}`;
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const moments = [0, 1, 2].map((a) => [0, 1, 2].map((b) =>
  nights.reduce((sum, s) => sum + s[a] * s[b], 0) / nights.length));

// least squares: from the mixtures z = A s, the matrix with which z comes closest to s
function fit(A) {
  const C = A.map((row) => moments[0].map((_, j) => dot(row, moments.map((line) => line[j]))));
  const G = A.map((row, r) => A.map((other) => dot(C[r], other)));
  if (A.length === 1) return { rank: 1, B: [C[0].map((c) => c / G[0][0])], C };
  const det = G[0][0] * G[1][1] - G[0][1] * G[1][0];
  if (det < 1e-9) return fit(A.slice(0, 1)); // equal heads: one mixture
  const B = [0, 1].map((r) => C[0].map((_, j) =>
    (G[1 - r][1 - r] * C[r][j] - G[0][1] * C[1 - r][j]) / det));
  return { rank: 2, B, C };
}

const paper = svg("svg", { viewBox: `${-REACH} ${-REACH} ${2 * REACH} ${2 * REACH}` });
const path = (name, d = "") => paper.appendChild(svg("path", { class: name, d }));
const note_at = (x, y, text, anchor) => paper.append(svg("text", { x, y, "text-anchor": anchor }, text));
path("grid", `M${-REACH} 0H${REACH}M0 ${-REACH}V${REACH}`);
path("night", nights.map((s) => `M${at(s[0], s[1])}m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0`).join(""));
const [miss, guess] = [path("miss"), path("guess")];
path("edge", `M0 0L${at(1, 0)}L${at(0, 1)}Z`);
note_at(REACH - 2, 16, `${names[0]} glow`, "end");
note_at(6, 12 - REACH, `${names[1]} glow`, "start");

// keep a tip in the triangle, on a grid of hundredths
function inside([x, y]) {
  const over = Math.max(0, x + y - 1) / 2;
  x = Math.round(100 * clamp(x - over, 0, 1)) / 100;
  return [x, Math.round(100 * clamp(y - over, 0, 1 - x)) / 100];
}
const heads = [0, 1].map((r) => {
  const line = svg("line", { class: "look" });
  const tip = svg("g", {}, svg("circle", { class: "hit", r: 16 }), svg("circle", { class: "tip", r: 9 }),
    svg("text", { y: 4, "text-anchor": "middle" }, r));
  handle(tip, {
    label: `head ${r}: weights of ${names[0]} and ${names[1]}`, step: 0.02, get: () => state.looks[r],
    set: (point) => { state.looks[r] = inside(point); draw(); },
    toData: (event) => { const [x, y] = spot(event, paper); return [x / UNIT, -y / UNIT]; },
  });
  // the slider shares out what the sheep leaves
  const share = slider(`head ${r}: ${names[0]}`, {
    min: 0, max: 1, step: 0.01, value: start[r][0], input(x) {
      const [a, b] = state.looks[r], sum = a + b || 1;
      state.looks[r] = [x * sum, (1 - x) * sum];
      tip.tell();
      draw();
    },
  });
  paper.append(line, tip);
  return { line, tip, share };
});

const meter = (label) => {
  const [bar, track, output] = [html("i"), html("div"), html("output")];
  track.append(bar);
  return { bar, track, output, node: html("div", { class: "dial meter" }, html("span", {}, label), track, output) };
};
const each = names.map((name) => meter(`R² ${name}`)), both = meter(`R² ${names[0]}, ${names[1]}`);
const mark = both.track.appendChild(html("u"));
const counts = html("div", { class: "counts" });

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
  heads.forEach(({ line, tip, share }, r) => {
    const [a, b] = state.looks[r], used = r < state.m;
    for (const node of [line, tip]) node.setAttribute("display", used ? "inline" : "none");
    line.setAttribute("x2", a * UNIT);
    line.setAttribute("y2", -b * UNIT);
    tip.setAttribute("transform", `translate(${a * UNIT} ${-b * UNIT})`);
    share.hidden = !used;
    if (a + b > 0) share.show(a / (a + b));
  });
  [...each, both].forEach(({ bar, output }, j) => {
    const value = j < 3 ? known[j] : r2;
    bar.style.width = `${100 * clamp(value, 0, 1)}%`;
    output.textContent = show(value);
  });
  mark.style.left = `calc(${100 * bound}% - 1px)`;
  state.best[state.m] = Math.max(state.best[state.m], r2);
  counts.textContent = `Dashed: the bound, ${show(bound)}. Largest so far: ${show(state.best[state.m])}.`;
  note("looks", A);
  note("known", known);
  note("r2", r2);
  note("best", state.best[state.m]);
  Object.assign(root.dataset, { heads: state.m, rank });
  const given = A.map((row, r) => `Head ${r} gives ${row.map((w, j) => `${show(w)} to ${names[j]}`).slice(0, row[2] > 0.001 ? 3 : 2).join(", ")}.`);
  const largest = Math.max(...B.map((row) => Math.max(...row.slice(0, 2).map(Math.abs))));
  say(`${given.join(" ")} Of both dragons R² is ${show(r2)}; all three add up to ${show(known[0] + known[1] + known[2])}. ` + (state.m === 1 ? ""
    : rank === 1 ? "The heads are equal: one mixture." : `To unmix them, W_O needs numbers up to ${show(largest, 1)}.`));
}

mount(choice("heads", [[1, "one"], [2, "two"]], 1, (m) => { state.m = m; draw(); }), paper,
  ...heads.map(({ share }) => share), ...each.map(({ node }) => node), both.node, counts);
draw();
