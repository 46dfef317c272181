// Two planes: keys to drag on the left, and what the average of the values becomes on the right.
const { words, query, keys, values, drag } = data;
const state = { keys: keys.map((k) => [...k]), query: [...query] };
const [unit, left, base] = [74, 34, 214];
const x = (a) => left + unit * a, y = (b) => base - unit * b;
const plane = (label, across, up) => svg("svg", { viewBox: "0 0 262 258", role: "group", "aria-label": label },
  svg("path", { d: `M${x(0)} ${y(2.75)}V${y(0)}H${x(2.95)}`, fill: "none", stroke: "var(--rest)" }),
  svg("text", { x: x(2.95), y: y(0) + 16, "text-anchor": "end", class: "quiet" }, `${across} →`),
  svg("text", { x: 0, y: 0, transform: `translate(${x(0) - 18} ${y(2.75)}) rotate(-90)`, "text-anchor": "end", class: "quiet" }, `${up} →`));
const find = plane("What words are found by", "animal", "wanting");
const offer = plane("What words give", "animal", "edible");

// the left plane: lines of equal score, the query, the keys
const contours = words.map(() => find.appendChild(svg("line", { stroke: "var(--muted)", "stroke-dasharray": "3 3" })));
const hand = find.appendChild(svg("line", { x1: x(0), y1: y(0), stroke: "var(--query)", "stroke-width": 4, "stroke-linecap": "round" }));
const goal = find.appendChild(svg("text", { class: "query" }, "“it” looks for"));
const handle = (role, name, last, get, set) => {
  const dot = svg("circle", { r: 8, fill: `var(--${role})` });
  const text = svg("text", { class: "name" }, name);
  const node = svg("g", { class: "handle", tabindex: 0, role: "slider", "aria-label": `${role} of ${name}` }, svg("circle", { r: 20, fill: "transparent" }), dot, text);
  const put = (a, b) => {
    set(clamp(Math.round(a * 20) / 20, 0, 2.8), clamp(Math.round(b * 20) / 20, 0, 2.7));
    draw();
  };
  node.addEventListener("pointerdown", (event) => { node.setPointerCapture(event.pointerId); event.preventDefault(); node.focus(); });
  node.addEventListener("pointermove", (event) => {
    if (!node.hasPointerCapture(event.pointerId)) return;
    const p = new DOMPoint(event.clientX, event.clientY).matrixTransform(find.getScreenCTM().inverse());
    put((p.x - left) / unit, (base - p.y) / unit);
  });
  node.addEventListener("keydown", (event) => {
    const step = { ArrowRight: [0.1, 0], ArrowLeft: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const [a, b] = get();
    put(a + step[0], b + step[1]);
  });
  node.move = () => {
    const [a, b] = get();
    node.setAttribute("transform", `translate(${x(a)} ${y(b)})`);
    const low = a < 0.3 && b < 0.3; // where other names may stand
    text.setAttribute("x", low && last ? 38 : 0);
    text.setAttribute("y", low ? 23 : -12);
    text.setAttribute("text-anchor", a < 0.3 ? "start" : a > 2.4 ? "end" : "middle");
    node.setAttribute("aria-valuetext", `${show(a)} animal, ${show(b)} wanting`);
    node.setAttribute("aria-valuenow", show(a).replace("−", "-"));
  };
  find.append(node);
  return node;
};
const handles = words.map((name, j) => handle("key", name, j === words.length - 1, () => state.keys[j], (a, b) => { state.keys[j] = [a, b]; }));

// the right plane: springs, values as dots whose area is the weight, and the way of "it"
const [dog, food, , hungry] = values;
offer.append(svg("path", { d: `M${[dog, food, hungry].map(([a, b]) => `${x(a)} ${y(b)}`).join("L")}Z`, fill: "var(--soft)" }));
const springs = values.map(([a, b]) => offer.appendChild(svg("line", { x1: x(a), y1: y(b), stroke: "var(--value)", opacity: 0.35 })));
const dots = values.map(([a, b]) => offer.appendChild(svg("circle", { cx: x(a), cy: y(b), fill: "var(--value)", opacity: 0.9 })));
const places = [[0, 30, "middle"], [8, 4, "start"], [8, -4, "start"], values[3][0] ? [-4, 30, "middle"] : [8, 20, "start"]]; // plus the radius, aside
const labels = values.map(([, b], j) => offer.appendChild(svg("text", { y: y(b) + places[j][1], "text-anchor": places[j][2], class: "name" })));
const way = offer.appendChild(svg("line", { x1: x(values[2][0]), y1: y(values[2][1]), stroke: "var(--output)", "stroke-width": 3 }));
const out = offer.appendChild(svg("circle", { r: 7, fill: "var(--output)" }));
const told = offer.appendChild(svg("text", { class: "output" }));

function draw() {
  const [qa, qb] = state.query, long = Math.hypot(qa, qb) || 1;
  const scores = state.keys.map(([a, b]) => qa * a + qb * b);
  const p = softmax(scores.map((s) => s / Math.SQRT2));
  const h = [0, 1].map((i) => p.reduce((sum, w, j) => sum + w * values[j][i], 0));
  for (const [name, value] of Object.entries({ x2: x(qa), y2: y(qb) })) hand.setAttribute(name, value);
  goal.setAttribute("transform", `translate(${x(qa * 0.52)} ${y(qb * 0.52) + 17}) rotate(${-Math.atan2(qb, qa) * 57.2958})`);
  state.keys.forEach(([a, b], j) => {
    const along = scores[j] / long ** 2;
    for (const [name, value] of Object.entries({ x1: x(a), y1: y(b), x2: x(qa * along), y2: y(qb * along) })) contours[j].setAttribute(name, value);
    handles[j].move();
  });
  p.forEach((w, j) => {
    const r = 21 * Math.sqrt(w);
    dots[j].setAttribute("r", r);
    labels[j].setAttribute("x", x(values[j][0]) + places[j][0] + (places[j][2] === "start" ? r : 0));
    springs[j].setAttribute("stroke-width", Math.max(0.7, 9 * w));
    springs[j].setAttribute("x2", x(h[0]));
    springs[j].setAttribute("y2", y(h[1]));
    labels[j].textContent = `${words[j]} ${w < 0.005 ? "<.01" : show(w)}`;
  });
  for (const [node, names] of [[way, ["x2", "y2"]], [out, ["cx", "cy"]]]) names.forEach((name, i) => node.setAttribute(name, i ? y(h[1]) : x(h[0])));
  told.setAttribute("x", x(h[0]) + 11);
  told.setAttribute("y", y(h[1]) - 9);
  told.textContent = `“it” (${show(h[0])}, ${show(h[1])})`;
  const done = h[1] > h[0];
  aim(`Animal ${show(h[0])}, edible ${show(h[1])}.${done ? " Now “it” means something to eat." : ""}`, done);
  say(`Scores: ${words.map((name, j) => `${name} ${show(scores[j], 1)}`).join(", ")}.`);
}
mount(`drag the key of ${word(words[drag])} until “it” becomes more edible than animal.`,
  html("div", { class: "planes" },
    html("div", {}, html("b", { class: "key" }, "what words are found by"), find),
    html("div", {}, html("b", { class: "value" }, "what words give, and what “it” becomes"), offer)),
  html("button", { type: "button", onclick: () => { state.keys = keys.map((k) => [...k]); draw(); } }, "back to the start"));
draw();
