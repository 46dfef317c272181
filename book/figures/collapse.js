// The tokens of one layer as points; a slider goes from layer to layer.
const { words, names, points, differ, reach } = data; // points[way][layer][token]
const state = { way: 0, layer: 0 };
const SIZE = 260, last = points[0].length - 1;
const to = ([x, y]) => [SIZE / 2 * (1 + x / reach), SIZE / 2 * (1 - y / reach)];
const shapes = [
  "M0-6A6 6 0 1 1 0 6A6 6 0 1 1 0-6Z", "M-5.5-5.5H5.5V5.5H-5.5Z", "M0-7L7 6H-7Z",
  "M0-8L7 0L0 8L-7 0Z",
];
const roles = ["query", "key", "value", "output"];
const trails = words.map((_, i) => svg("path", { class: "trail", stroke: `var(--${roles[i % 4]})` }));
const dots = words.map((_, i) => svg("path", { d: shapes[i % 4], fill: `var(--${roles[i % 4]})` }));
const places = words.map((_, i) => svg("g", { class: "place" }, dots[i]));
const paper = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, "aria-hidden": true },
  svg("rect", { class: "frame", x: 0.5, y: 0.5, width: SIZE - 1, height: SIZE - 1 }),
  svg("path", { class: "grid", d: `M0 ${SIZE / 2}H${SIZE}M${SIZE / 2} 0V${SIZE}` }), ...trails, ...places);
const key = html("div", { class: "key" }, ...words.map((name, i) => html("span", {},
  svg("svg", { viewBox: "-9 -9 18 18", width: 16, height: 16, "aria-hidden": true },
    svg("path", { d: shapes[i % 4], fill: `var(--${roles[i % 4]})` })), name)));
const seen = new Set();

function draw() {
  const track = points[state.way];
  words.forEach((_, i) => {
    places[i].setAttribute("transform", `translate(${to(track[state.layer][i])})`);
    const before = track[Math.max(0, state.layer - 1)][i];
    trails[i].setAttribute("d", `M${to(before)}L${to(track[state.layer][i])}`);
  });
  if (state.layer === last) seen.add(state.way);
  note("points", track[state.layer]);
  root.dataset.differ = differ[state.way][state.layer];
  const done = seen.size === names.length;
  const apart = names.map((name, i) => [name, differ[i].at(-1)]).filter(([, u]) => Number(u) > 0.01);
  aim(done ? `After layer ${last}, the words still differ in: ${apart.map(([name, u]) => `${name} (${u})`).join(", ") || "none"}.`
    : `kinds of layer seen after layer ${last}: ${seen.size} of ${names.length}.`, done);
  say(`${names[state.way]}, ${state.layer ? `after layer ${state.layer}` : "before the first layer"}: the words differ by ${differ[state.way][state.layer]}.`);
}

mount(`move each kind of layer to layer ${last}. Which of them keep the four points apart?`,
  html("div", { class: "sheet" }, paper, key),
  choice("layers of", names.map((name, i) => [i, name]), 0, (i) => { state.way = i; draw(); }),
  slider("layer", {
    min: 0, max: last, step: 1, value: 0, say: (i) => (i ? `${i}` : "input"),
    input: (i) => { state.layer = i; draw(); },
  }));
draw();
