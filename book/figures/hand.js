// A query to turn, the shadows of four keys on its line, and the ranking of their scores.
const { words, query, keys } = data;
const long = Math.hypot(...query), start = Math.atan2(query[1], query[0]);
const state = { turn: start };
const [unit, mid, beyond] = [44, 150, 0.9]; // the handle is beyond the tip of the query
const x = (a) => mid + unit * a, y = (b) => mid - unit * b;
const set = (node, values) => Object.entries(values).forEach(([name, value]) => node.setAttribute(name, value));
const line = (look) => svg("line", { x1: mid, y1: mid, ...look });

const shadows = keys.map(() => line({ stroke: "var(--key)", "stroke-width": 11, opacity: 0.25 }));
const drops = keys.map(() => line({ stroke: "var(--muted)", "stroke-dasharray": "3 3" }));
const ruler = line({ stroke: "var(--query)", opacity: 0.45 });
const arrow = svg("path", { fill: "none", stroke: "var(--query)", "stroke-width": 3, "stroke-linejoin": "round" });
const scores = keys.map(() => svg("text", { class: "score" }));
const places = [[10, 5, "start"], [-9, 15, "end"], [-9, -7, "end"], [8, -7, "start"]]; // of names
const names = keys.map(([a, b], j) => svg("text", {
  x: x(a) + places[j][0], y: y(b) + places[j][1], "text-anchor": places[j][2], class: "name",
}, words[j]));
const tip = svg("g", { class: "tip", tabindex: 0, role: "slider", "aria-label": `direction of the query of ${word("it")}`, "aria-valuemin": -180, "aria-valuemax": 180 },
  svg("circle", { r: 22, fill: "transparent" }), svg("circle", { r: 8, fill: "var(--paper)", stroke: "var(--query)", "stroke-width": 3.5 }));
const face = svg("svg", { viewBox: "0 0 300 300" },
  svg("path", { d: `M${x(-2.9)} ${y(0)}H${x(2.9)}M${x(0)} ${y(-2.9)}V${y(2.9)}`, stroke: "var(--rest)" }),
  svg("text", { x: x(3), y: y(0) - 6, "text-anchor": "end", class: "quiet" }, "animal"),
  svg("text", { x: x(0) + 5, y: y(2.85), class: "quiet" }, "wanting"),
  ruler, ...shadows, ...drops,
  ...keys.map(([a, b]) => svg("circle", { cx: x(a), cy: y(b), r: 5.5, fill: "var(--key)" })), arrow, ...names, ...scores, tip);

const rows = words.map((name) => {
  const [bar, score] = [html("i"), html("b")];
  return { bar, score, node: html("div", { class: "rank" }, html("span", {}, name), html("div", { class: "lane" }, bar), score) };
});

function draw() {
  const [u, v] = [Math.cos(state.turn), Math.sin(state.turn)];
  const at = (along, aside = 0) => [x(along * u + aside * v), y(along * v - aside * u)];
  const found = keys.map(([a, b]) => long * (u * a + v * b));
  const [end, wing, other, far] = [at(long), at(long - 0.17, 0.11), at(long - 0.17, -0.11), at(long + beyond)];
  set(ruler, { x1: at(-2.6)[0], y1: at(-2.6)[1], x2: far[0], y2: far[1] });
  set(arrow, { d: `M${mid} ${mid}L${end}M${wing}L${end}L${other}` });
  const degrees = Math.round(state.turn * 180 / Math.PI);
  set(tip, { transform: `translate(${far})`, "aria-valuenow": degrees, "aria-valuetext": `${degrees} degrees` });
  const order = found.map((s, j) => j).sort((i, j) => found[j] - found[i] || i - j);
  keys.forEach(([a, b], j) => {
    const [fx, fy] = at(found[j] / long), [sx, sy] = at(found[j] / long, 0.36), { bar, score, node } = rows[j];
    set(shadows[j], { x2: fx, y2: fy });
    set(drops[j], { x1: x(a), y1: y(b), x2: fx, y2: fy });
    set(scores[j], { x: sx, y: sy + 4 });
    scores[j].textContent = show(found[j], Math.abs(found[j] % 1) < 0.005 ? 0 : 1);
    node.style.transform = `translateY(${2.6 * order.indexOf(j)}em)`;
    node.classList.toggle("first", order[0] === j);
    score.textContent = show(found[j], 1);
    bar.style.width = `${10 * Math.abs(found[j])}%`;
    bar.style.left = `${50 - Math.max(0, -10 * found[j])}%`;
  });
  const [first] = order;
  aim(`${word(words[first])} leads with ${show(found[first], 1)}.${first === 1 ? " All others are negative." : ""}`, first === 1);
  say(`The query is (${show(long * u, 1)}, ${show(long * v, 1)}): ${order.map((j) => `${words[j]} ${show(found[j], 1)}`).join(", ")}.`);
}
const turned = (angle) => { state.turn = Math.atan2(Math.sin(angle), Math.cos(angle)); draw(); };
tip.addEventListener("pointerdown", (event) => { tip.setPointerCapture(event.pointerId); event.preventDefault(); tip.focus(); });
tip.addEventListener("pointermove", (event) => {
  if (!tip.hasPointerCapture(event.pointerId)) return;
  const p = new DOMPoint(event.clientX, event.clientY).matrixTransform(face.getScreenCTM().inverse());
  turned(Math.atan2(mid - p.y, p.x - mid));
});
tip.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: 5, ArrowUp: 5, ArrowRight: -5, ArrowDown: -5 }[event.key];
  if (!step) return;
  event.preventDefault();
  turned(state.turn + step * Math.PI / 180);
});
mount("turn the query by its ring. Where does “hungry” overtake “dog”? And can “food”, whose key is (0, 0), ever win?",
  html("div", { class: "two" }, face, html("div", { class: "ranking", "aria-hidden": true }, ...rows.map(({ node }) => node))),
  html("button", { type: "button", onclick: () => turned(start) }, "back to the start"));
draw();
