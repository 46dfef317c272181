// All heads as small maps; of one head the lines from one word to all others.
const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
const { weights, queries, keys } = data; // weights[layer][head][query][key]
const layers = weights.length, heads = weights[0].length, many = layers * heads > 1;
const state = { layer: data.layer, head: data.head, query: data.query };
const ROW = 26;
const name = (l, h) => `${layers > 1 ? `layer ${l + 1}, ` : ""}head ${h + 1}`;
const show = (x) => (x > 0 && x < 0.005 ? "<0.01" : x.toFixed(2)); // not called 0
const word = (token) => `\u2068“${token}”\u2069`; // whatever its direction

function make(node, attributes, ...children) {
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  node.append(...children);
  return node;
}
const html = (tag, attributes = {}, ...children) =>
  make(document.createElement(tag), attributes, ...children);
const svg = (tag, attributes = {}, ...children) =>
  make(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, ...children);

// a map as one path for each of 16 shades, which is fast to draw 144 times
function shades(A) {
  const paths = Array(17).fill("");
  A.forEach((row, i) => row.forEach((w, j) => {
    paths[Math.round(16 * w)] += `M${j} ${i}h1v1h-1z`;
  }));
  return paths.flatMap((d, k) => (d && k ? svg("path", { d, fill: "var(--weight)", "fill-opacity": k / 16 }) : []));
}

// radio buttons, of which the arrow keys choose the next
function choices(label, look, chosen, items, choose) {
  const group = `${label}${Math.random()}`; // another one for a copy of this view
  return html("div", { class: look, role: "radiogroup", "aria-label": label }, ...items.map(([title, ...shown], k) => {
    const input = html("input", { type: "radio", name: group, "aria-label": title, onchange: () => choose(k) });
    input.dataset.lmSuppressShortcuts = "true"; // JupyterLab has shortcuts of one key
    input.checked = k === chosen;
    return html("label", { title }, input, ...shown);
  }));
}

const maps = weights.flatMap((layer, l) => layer.map((A, h) => [name(l, h),
  svg("svg", { viewBox: `0 0 ${A[0].length} ${A.length}`, preserveAspectRatio: "none", "aria-hidden": true }, ...shades(A))]));
const small = choices("heads, one row for each layer", "picker", data.layer * heads + data.head, many ? maps : [], (k) => {
  [state.layer, state.head] = [Math.floor(k / heads), k % heads];
  draw();
});
small.style.setProperty("--n", Math.min(heads, 12));
small.hidden = !many;
const who = choices("the word that attends", "words", data.query, queries.map((token) => [token, html("span", {}, token)]), (query) => {
  state.query = query;
  draw();
});
for (const node of who.children) // the mouse need not click
  node.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && node.firstChild.click());
const bars = keys.map((token) => html("div", {}, html("i"), html("b"), html("span", {}, token)));
const lines = keys.map(() => svg("path", { fill: "none", stroke: "var(--weight)", "vector-effect": "non-scaling-stroke" }));
const tall = Math.max(queries.length, keys.length) * ROW;
const room = svg("svg", { viewBox: `0 0 100 ${tall}`, preserveAspectRatio: "none", style: `height: ${tall}px`, "aria-hidden": true }, ...lines);

const readout = html("p", { class: "readout", "aria-live": "polite" });

function draw() {
  const { layer, head, query } = state, row = weights[layer][head][query], y = (query + 0.5) * ROW;
  const order = row.map((_, j) => j).sort((a, b) => row[b] - row[a]);
  row.forEach((w, j) => {
    lines[j].setAttribute("d", `M0 ${y}C50 ${y} 50 ${(j + 0.5) * ROW} 100 ${(j + 0.5) * ROW}`);
    lines[j].style.strokeWidth = `${w < 0.005 ? 0 : 1 + 11 * w}px`;
    lines[j].style.strokeOpacity = Math.min(1, 0.15 + w);
    bars[j].firstChild.style.width = `${100 * w}%`;
    bars[j].children[1].textContent = show(w);
    bars[j].classList.toggle("best", j === order[0]);
  });
  Object.assign(root.dataset, { query, layer, head, weights: row.map((x) => x.toFixed(4)).join(" ") });
  readout.textContent = `${many ? `${name(layer, head)}: ` : ""}${word(queries[query])} attends to ${order.slice(0, 3).map((j) => `${word(keys[j])} ${show(row[j])}`).join(", ")}.`;
}

root.querySelector(".still").hidden = true;
root.append(html("style", {}, css), html("div", { class: "live" }, small,
  html("div", { class: "ladder" }, who, room, html("div", { class: "words" }, ...bars)), readout));
draw();
