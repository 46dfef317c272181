// Left: a query and keys to drag. Right: values, their hull, and the output.
const { words, values, hull, reach, asks, axes } = data;
const start = { query: data.query, keys: data.keys };
let { query, keys } = structuredClone(start);
const SIZE = 300;

// a part of the plane as a drawing, with the ways from numbers to pixels and back
function plane(low, high, title, [across, up]) {
  const unit = SIZE / Math.max(high[0] - low[0], high[1] - low[1]);
  const to = ([x, y]) => [(x - low[0]) * unit, (high[1] - y) * unit];
  const [width, height] = to([high[0], low[1]]);
  const [cx, cy] = to([0, 0]);
  const paper = svg("svg", { viewBox: `-12 -26 ${width + 24} ${height + 52}` },
    svg("path", { class: "grid", d: `M0 ${cy}H${width}M${cx} 0V${height}` }),
    svg("text", { x: width, y: cy + 16, "text-anchor": "end" }, across), svg("text", { x: cx + 5, y: 2 }, up));
  const from = (event) => {
    const [x, y] = spot(event, paper);
    return [low[0] + x / unit, high[1] - y / unit];
  };
  return { paper, to, from, node: html("div", {}, html("div", {}, title), paper) };
}

// an arrow from the origin, its name beyond the tip
function arrow({ paper, to }, name, colour, round = false) {
  const [line, text] = [svg("line", { stroke: colour }), svg("text", { "text-anchor": "middle" }, name)];
  const tip = svg("g", {}, svg("circle", { class: "hit", r: 15 }), round
    ? svg("circle", { r: 7, fill: colour }) : svg("path", { d: "M-6-6H6V6H-6Z", fill: colour }));
  paper.append(line, tip, text);
  return { tip, to(point, below) {
    const [[x0, y0], [x, y]] = [to([0, 0]), to(point)];
    for (const [key, value] of Object.entries({ x1: x0, y1: y0, x2: x, y2: y })) line.setAttribute(key, value);
    tip.setAttribute("transform", `translate(${x} ${y})`);
    text.setAttribute("x", clamp(x, 14, SIZE - 14));
    text.setAttribute("y", y + (below ? 24 : -12));
  } };
}

const left = plane([-reach, -reach], [reach, reach], `query of ${word(asks)}, and keys`, axes[0]);
const ends = [0, 1].map((axis) => [...values.map((v) => v[axis]), 0]);
const room = 0.15 * Math.max(...ends.map((e) => Math.max(...e) - Math.min(...e)), 0.1);
const right = plane(ends.map((e) => Math.min(...e) - room), ends.map((e) => Math.max(...e) + room), "values, and what goes home", axes[1]);

// how far each key reaches along the query is its score, up to the query's length
const feet = svg("path", { class: "foot" });
left.paper.append(feet);
const limit = (point) => point.map((x) => clamp(Math.round(x * 100) / 100, -reach, reach));
const grip = (tip, label, get, set) => handle(tip, {
  label, get, toData: left.from, set: (point) => { set(limit(point)); draw(); },
});
const keyArrows = words.map((name) => arrow(left, name, "var(--key)"));
const queryArrow = arrow(left, "q", "var(--query)", true);
right.paper.append(svg("polygon", { class: "hull", points: hull.map(right.to).join(" ") }));
words.forEach((name, j) => arrow(right, name, "var(--value)").to(values[j], values[j][1] < 0));
const output = arrow(right, "output", "var(--output)", true);

const cells = words.map(() => [html("td"), html("td"), html("td"), html("i")]);
const table = html("table", {},
  html("tr", {}, ...["key", "q · k", "/ √2", "weight"].map((name) => html("th", { scope: "col" }, name)), html("td")),
  ...words.map((name, j) => html("tr", {}, html("th", { scope: "row" }, name), ...cells[j].slice(0, 3), html("td", {}, cells[j][3]))));

function draw() {
  const scores = keys.map((k) => k[0] * query[0] + k[1] * query[1]);
  const weights = softmax(scores.map((s) => s / Math.SQRT2));
  const home = [0, 1].map((axis) => weights.reduce((sum, w, j) => sum + w * values[j][axis], 0));
  keys.forEach((k, j) => keyArrows[j].to(k, k[1] < 0));
  queryArrow.to(query, query[1] >= 0);
  output.to(home);
  const length = Math.hypot(...query), along = query.map((x) => x / length);
  const line = [-1, 1].map((s) => left.to(along.map((x) => 2 * s * reach * x)));
  feet.setAttribute("d", length ? `M${line.join("L")}` + keys.map((k, j) =>
    `M${left.to(k)}L${left.to(along.map((x) => (x * scores[j]) / length))}`).join("") : "");
  cells.forEach(([score, scaled, weight, bar], j) => {
    score.textContent = show(scores[j]);
    scaled.textContent = show(scores[j] / Math.SQRT2);
    weight.textContent = show(weights[j]);
    bar.style.width = `${100 * weights[j]}%`;
  });
  note("query", query);
  note("keys", keys);
  note("scores", scores);
  note("weights", weights);
  note("output", home);
  const top = Math.max(...weights), best = words.filter((_, j) => top - weights[j] < 1e-9);
  say(`q = (${query.map((x) => show(x)).join(", ")}): ${best.map(word).join(", ")} ${best.length > 1 ? "lead with" : "leads with"} ${show(top)}. `
    + `${word(asks)} takes home (${home.map((x) => show(x)).join(", ")}).`);
}

const grips = [
  grip(queryArrow.tip, `query of ${asks}`, () => query, (q) => { query = q; }),
  ...words.map((name, j) => grip(keyArrows[j].tip, `key of ${name}`, () => keys[j], (k) => { keys[j] = k; })),
];
const again = () => { ({ query, keys } = structuredClone(start)); grips.forEach((g) => g.tell()); draw(); };
mount(html("div", { class: "planes" }, left.node, right.node), table,
  html("button", { type: "button", onclick: again }, "back to the start"));
draw();
