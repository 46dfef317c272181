// All heads as small maps; of one head the lines from one word, and the whole map.
const { weights, queries, keys, names } = data; // weights[layer][head][query][key]
const layers = weights.length, heads = weights[0].length, all = layers * heads;
const state = { layer: data.layer, head: data.head, query: data.first };
const ROW = 26;
const title = (h) => (names ? names[h] : `head ${h + 1}`);
const place = (l, h) => (layers > 1 ? `layer ${l + 1}, ` : "") + title(h);
const matrix = () => weights[state.layer][state.head];
const best = (row) => row.indexOf(Math.max(...row));

// a map as one path for each of 16 shades, which is fast to draw 144 times
function shades(A, size, least = 1) {
  const paths = Array(17).fill("");
  A.forEach((row, i) => row.forEach((w, j) => {
    paths[Math.round(16 * w)] += `M${j * size} ${i * size}h${size}v${size}h-${size}z`;
  }));
  return paths.map((d, k) => d && k >= least && svg("path", { d, fill: "var(--weight)", "fill-opacity": k / 16 })).filter(Boolean);
}

// the picker: one small map for each head, one row for each layer
const small = weights.flatMap((layer, l) => layer.map((A, h) => html("button", {
  type: "button", "aria-label": place(l, h), title: place(l, h),
}, svg("svg", { viewBox: `0 0 ${A[0].length} ${A.length}`, preserveAspectRatio: "none", "aria-hidden": true }, ...shades(A, 1)))));
const across = Math.min(heads, 12);
const picker = html("div", {
  class: "picker", role: "group", "aria-label": "heads", style: `--n: ${across}`,
}, ...(layers > 1 || heads > 1 ? weights.flatMap((_, l) => [
  html("span", { "aria-hidden": true }, layers > 1 ? l + 1 : ""),
  html("div", {}, ...small.slice(l * heads, (l + 1) * heads))]) : []));

// the lines: a word on the left attends to the words on the right
const who = queries.map((token) => html("button", { type: "button" }, token));
const bars = keys.map((token) => ({ bar: html("i"), number: html("b"), token }));
const lines = keys.map(() => svg("path", { fill: "none", stroke: "var(--weight)", "vector-effect": "non-scaling-stroke" }));
const tall = Math.max(queries.length, keys.length) * ROW;
const room = svg("svg", { viewBox: `0 0 100 ${tall}`, preserveAspectRatio: "none", style: `height: ${tall}px`, "aria-hidden": true }, ...lines);
const asking = html("div", { class: "words", role: "group", "aria-label": "the word that attends" }, ...who);
const ladder = html("div", { class: "ladder" }, asking, room, html("div", { class: "words" },
  ...bars.map(({ bar, number, token }) => html("div", {}, bar, number, html("span", {}, token)))));

// the map of the chosen head; the row of the word is framed
const size = clamp(250 / keys.length, 4, 28), named = size > 10;
const [left, top] = named ? [74, 62] : [2, 2];
const [width, height] = [keys.length * size, queries.length * size];
const ink = svg("g");
const frame = svg("rect", { class: "frame", x: 0, width, height: size, fill: "none" });
const map = svg("svg", {
  viewBox: `${-left} ${-top} ${left + width + (named ? 34 : 2)} ${top + height + 2}`, "aria-hidden": true,
  onpointermove(event) {
    const [j, i] = spot(event, map).map((x) => Math.floor(x / size));
    if (matrix()[i]?.[j] != null) say(`${place(state.layer, state.head)}: ${word(queries[i])} gives ${show(matrix()[i][j])} to ${word(keys[j])}.`);
  },
  onclick(event) { pick(clamp(Math.floor(spot(event, map)[1] / size), 0, queries.length - 1)); },
}, ink, svg("rect", { class: "edge", x: 0, y: 0, width, height, fill: "none" }), frame, ...(named ? [
  ...queries.map((token, i) => svg("text", { x: -5, y: (i + 0.5) * size + 4, "text-anchor": "end" }, cut(token, 10))),
  ...keys.map((token, j) => svg("text", { transform: `translate(${(j + 0.6) * size} -6) rotate(-50)` }, cut(token, 10)))] : []));
map.style.maxWidth = `${1.3 * (left + width + 36)}px`;

// the task: at how many heads does the first word give most to the same word as here?
const [first, wanted] = [data.first, best(weights[data.layer][data.head][data.first])];
const alike = small.map((_, k) => best(weights[Math.floor(k / heads)][k % heads][first]) === wanted);
const found = new Set();
const count = alike.filter(Boolean).length;

function draw() {
  const { layer, head, query } = state, row = matrix()[query];
  const [y, top] = [(query + 0.5) * ROW, best(row)];
  row.forEach((w, j) => {
    lines[j].setAttribute("d", `M0 ${y}C50 ${y} 50 ${(j + 0.5) * ROW} 100 ${(j + 0.5) * ROW}`);
    lines[j].style.strokeWidth = `${w < 0.005 ? 0 : 1 + 11 * w}px`;
    lines[j].style.strokeOpacity = Math.min(1, 0.15 + w);
    bars[j].bar.style.width = `${100 * w}%`;
    bars[j].number.textContent = show(w);
    bars[j].number.parentNode.classList.toggle("best", j === top);
  });
  ink.replaceChildren(...shades(matrix(), size));
  frame.setAttribute("y", query * size);
  caption.textContent = all > 1 ? place(layer, head) : "";
  note("weights", row);
  Object.assign(root.dataset, { query, layer, head });
  if (all > 1 && query === first && alike[layer * heads + head]) found.add(layer * heads + head);
  small.forEach((button, k) => button.classList.toggle("found", found.has(k)));
  if (all > 1) aim(found.size < count ? `You have found ${found.size}${found.size > 1 ? " of them, underlined in the grid" : ""}.`
    : `${count === 1 ? "It is the only one" : `There are ${count} of them, underlined in the grid`}.`, found.size === count && tried > 1);
  const order = row.map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]).slice(0, 3);
  say((all > 1 ? `${place(layer, head)}: ` : "") + `${word(queries[query])} attends to ${order.map(([w, j]) => `${word(keys[j])} ${show(w)}`).join(", ")}.`);
}

let tried = 0;
const caption = html("b");
const reveal = () => { alike.forEach((is, k) => is && found.add(k)); tried = 2; draw(); };
const pick = roving(who, (i) => { state.query = i; draw(); });
who.forEach((button, i) => button.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && pick(i)));
const choose = roving(small, (k) => {
  [state.layer, state.head, tried] = [Math.floor(k / heads), k % heads, tried + 1];
  draw();
}, heads);
mount(all > 1
  ? `in how many of the ${all} heads does ${word(queries[first])} attend most to ${word(keys[wanted])}, as it does here? Guess, then look for them in the grid.`
  : "choose each word in turn. Which one is attended to by the most words?",
  layers > 1 ? html("div", { class: "hint", "aria-hidden": true }, "one row per layer, one column per head") : null,
  all > 1 ? picker : null, all > 1 ? html("div", { class: "where" }, caption, html("button", { type: "button", onclick: reveal }, "show them")) : null, html("div", { class: "pair" }, ladder, html("div", { class: "map" }, map)));
choose(state.layer * heads + state.head);
pick(data.first);
