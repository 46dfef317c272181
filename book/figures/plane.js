// Left: a query and keys to drag. Right: values, their hull, and the output.
const { words, values, hull, reach, asks, axes } = data;
const start = { query: data.query, keys: data.keys };
let { query, keys } = structuredClone(start);
const SIZE = 300, STEM = 30; // the knob of the query is so far beyond its tip

// a part of the plane as a drawing, with the ways from numbers to pixels and back
function plane(low, high, title, [across, up]) {
  const unit = SIZE / Math.max(high[0] - low[0], high[1] - low[1]);
  const to = ([x, y]) => [(x - low[0]) * unit, (high[1] - y) * unit];
  const [width, height] = to([high[0], low[1]]);
  const [cx, cy] = to([0, 0]);
  const paper = svg("svg", { viewBox: `-14 -24 ${width + 28} ${height + 48}` },
    svg("path", { class: "grid", d: `M0 ${cy}H${width}M${cx} 0V${height}` }),
    svg("text", { class: "axis", x: width, y: height + 15, "text-anchor": "end" }, `${across} →`),
    svg("text", { class: "axis", x: cx, y: -8, "text-anchor": "middle" }, `${up} ↑`));
  const from = (event) => {
    const [x, y] = spot(event, paper);
    return [low[0] + x / unit, high[1] - y / unit];
  };
  return { paper, to, from, unit, width, height, arrows: [], node: html("div", {}, html("div", { class: "title" }, title), paper) };
}

// an arrow from the origin with a mark at its tip, and its name somewhere near
function arrow(part, name, role, mark) {
  const line = svg("line", { class: "shaft", stroke: `var(--${role})` });
  const text = svg("text", { class: "name", fill: `var(--${role})`, "text-anchor": "middle" }, name);
  const tip = svg("g", {}, svg("circle", { class: "hit", r: 14 }), mark);
  part.paper.append(line, tip);
  const one = { tip, text, line, long: [...name].length * 7.5 + 5, choice: 0, set(point) {
    const [[x0, y0], [x, y]] = [part.to([0, 0]), part.to(point)];
    one.ends = [[x0, y0], [x, y]];
    for (const [key, value] of Object.entries({ x1: x0, y1: y0, x2: x, y2: y })) line.setAttribute(key, value);
    tip.setAttribute("transform", `translate(${x} ${y})`);
  } };
  part.arrows.push(one);
  return one;
}

// names go where no line, no mark and no other name is; they stay while there is room
const WAYS = [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -0.8], [-1, -0.8], [1, 0.8], [-1, 0.8]];
function crosses([[x1, y1], [x2, y2]], [left, top, right, bottom]) {
  for (let t = 0; t <= 1; t += 0.04) {
    const [x, y] = [x1 + t * (x2 - x1), y1 + t * (y2 - y1)];
    if (x > left && x < right && y > top && y < bottom) return true;
  }
  return false;
}
function label({ arrows, width, height }, knob) {
  const taken = [...arrows.map(({ ends: [, [x, y]] }) => [x - 8, y - 8, x + 8, y + 8])];
  if (knob) taken.push([knob[0] - 15, knob[1] - 15, knob[0] + 15, knob[1] + 15]);
  const meets = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
  for (const one of arrows) {
    if (!one.text.textContent) continue;
    const [x, y] = one.ends[1];
    const boxes = WAYS.map(([a, b]) => {
      const [cx, cy] = [x + a * (11 + one.long / 2), y + b * 20];
      return [cx - one.long / 2, cy - 10, cx + one.long / 2, cy + 10];
    });
    const cost = boxes.map((box, k) => arrows.filter(({ ends }) => crosses(ends, box)).length
      + 2 * taken.filter((other) => meets(box, other)).length
      + 4 * (box[0] < -14 || box[1] < -20 || box[2] > width + 14 || box[3] > height + 20) + k / 100 - 0.5 * (k === one.choice));
    one.choice = cost.indexOf(Math.min(...cost));
    const [left, top, right, bottom] = boxes[one.choice];
    one.text.setAttribute("transform", `translate(${(left + right) / 2} ${(top + bottom) / 2 + 4.5})`);
    taken.push(boxes[one.choice]);
  }
}

const left = plane([-reach, -reach], [reach, reach], `query q of ${word(asks)}, and keys: drag them`, axes[0]);
const ends = [0, 1].map((axis) => [...values.map((v) => v[axis]), 0]);
const room = 0.2 * Math.max(...ends.map((e) => Math.max(...e) - Math.min(...e)), 0.1);
const right = plane(ends.map((e) => Math.min(...e) - room), ends.map((e) => Math.max(...e) + room), `values, and the output for ${word(asks)}`, axes[1]);

// how far each key reaches along the query is its score, up to the query's length
const feet = svg("path", { class: "foot" });
left.paper.append(feet);
const limit = (point) => point.map((x) => clamp(Math.round(x * 100) / 100, -reach, reach));
const grip = (tip, label, get, set, toData = left.from) => handle(tip, {
  label, get, toData, set: (point) => { set(limit(point)); draw(); },
});
const square = (role, r) => svg("path", { d: `M${-r}${-r}H${r}V${r}H${-r}Z`, fill: `var(--${role})` });
const queryArrow = arrow(left, "", "query", svg("circle", { r: 4, fill: "var(--query)" }));
queryArrow.line.style.strokeWidth = 7; // it is seen below a key that lies on it
const keyArrows = words.map((name) => arrow(left, name, "key", square("key", 6)));
const stem = svg("line", { class: "stem", stroke: "var(--query)" });
const knob = svg("g", {}, svg("circle", { r: 14, fill: "var(--query)" }), svg("text", { y: 5, "text-anchor": "middle" }, "q"));
left.paper.append(stem);
right.paper.append(svg("polygon", { class: "hull", points: hull.map(right.to).join(" ") }));
words.forEach((name, j) => arrow(right, name, "value", square("value", 5)).set(values[j]));
const output = arrow(right, "output", "output", svg("circle", { r: 7, fill: "var(--output)" }));
// what can be seized lies above all lines, and names above that
for (const { paper, arrows } of [left, right]) paper.append(...arrows.map(({ tip }) => tip), ...arrows.map(({ text }) => text));
left.paper.append(knob);

// the knob lies on the line of the query: from q to its place, and back
let facing = [1, 0]; // of a query without length
const beyond = (q) => {
  const [tx, ty] = left.to(q), long = Math.hypot(...q);
  if (long) facing = q.map((x) => x / long);
  return [tx + STEM * facing[0], ty - STEM * facing[1]];
};
const fromKnob = (event) => {
  const point = left.from(event), long = Math.hypot(...point), stem = STEM / left.unit;
  if (long) facing = point.map((x) => x / long);
  return facing.map((x) => x * Math.max(0, long - stem));
};

const cells = words.map(() => [html("td"), html("td"), html("td"), html("i")]);
const table = html("table", {},
  html("tr", {}, ...["key", "q · k", "/ √2", "weight"].map((name) => html("th", { scope: "col" }, name)), html("td")),
  ...words.map((name, j) => html("tr", {}, html("th", { scope: "row" }, name), ...cells[j].slice(0, 3), html("td", {}, cells[j][3]))));

// the task: the leader at the start is to get 0.9, or as much as a query in reach can give
const share = (q, k) => softmax(k.map((key) => (key[0] * q[0] + key[1] * q[1]) / Math.SQRT2));
const leader = share(query, keys).reduce((best, w, j, all) => (w > all[best] + 1e-9 ? j : best), 0);
const line41 = Array.from({ length: 41 }, (_, k) => (k / 20 - 1) * reach);
const most = Math.max(...line41.flatMap((x) => line41.map((y) => share([x, y], keys)[leader])));
const wanted = Math.min(0.9, Math.floor(20 * (most - 0.01)) / 20);
const tick = html("u", { style: `left: ${100 * wanted}%` });
cells[leader][3].parentNode.append(tick);
const length = (q) => show(Math.hypot(...q), 1);

function draw() {
  const scores = keys.map((k) => k[0] * query[0] + k[1] * query[1]);
  const weights = share(query, keys);
  const home = [0, 1].map((axis) => weights.reduce((sum, w, j) => sum + w * values[j][axis], 0));
  keys.forEach((k, j) => keyArrows[j].set(k));
  queryArrow.set(query);
  output.set(home);
  const [tip, end] = [left.to(query), beyond(query)];
  for (const [key, value] of Object.entries({ x1: tip[0], y1: tip[1], x2: end[0], y2: end[1] })) stem.setAttribute(key, value);
  knob.setAttribute("transform", `translate(${end})`);
  label(left, end);
  label(right);
  const long = Math.hypot(...query), along = query.map((x) => x / long);
  const line = [-1, 1].map((s) => left.to(along.map((x) => 2 * s * reach * x)));
  feet.setAttribute("d", long ? `M${line.join("L")}` + keys.map((k, j) =>
    `M${left.to(k)}L${left.to(along.map((x) => (x * scores[j]) / long))}`).join("") : "");
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
  const done = weights[leader] > wanted;
  aim(done ? `q is ${length(query)} long now and was ${length(start.query)}: a longer query makes a sharper choice.`
    : `${word(words[leader])} has ${show(weights[leader])}; the mark in the table is at ${show(wanted)}.`, done);
  const top = Math.max(...weights), best = words.filter((_, j) => top - weights[j] < 1e-9);
  say(`q = (${query.map((x) => show(x)).join(", ")}): ${best.map(word).join(", ")} ${best.length > 1 ? "lead with" : "leads with"} ${show(top)}. `
    + `${word(asks)} receives (${home.map((x) => show(x)).join(", ")}).`);
}

const grips = [
  grip(knob, `query of ${asks}`, () => query, (q) => { query = q; }, fromKnob),
  ...words.map((name, j) => grip(keyArrows[j].tip, `key of ${name}`, () => keys[j], (k) => { keys[j] = k; })),
];
const again = () => { ({ query, keys } = structuredClone(start)); grips.forEach((g) => g.tell()); draw(); };
mount(`drag the knob q until ${word(asks)} gives more than ${show(wanted)} of its attention to ${word(words[leader])}. Which helps, turning q or pulling it longer?`,
  html("div", { class: "planes" }, left.node, right.node), table,
  html("button", { type: "button", onclick: again }, "back to the start"));
draw();
