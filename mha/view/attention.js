// Choose who looks: bars over the keys say at whom, or a map of all words, or numbers.
const { weights, queries, keys, names } = data; // weights[layer][head][query][key]
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#C5679B", "#9B7A00", "#3B8FC2", "#8C6D1F", "#808080"];
const state = { layer: 0, query: 0, on: new Set([0]), as: "bars" };
const colour = (h) => COLOURS[h % COLOURS.length];
const title = (h) => (names ? names[h] : `head ${h + 1}`);
const chosen = () => [...state.on].sort((a, b) => a - b);
const row = (h) => weights[state.layer][h][state.query];
const place = html("div");

const who = queries.map((token) => html("button", { type: "button" }, token));
const chips = weights[0].map((_, h) => html("button", {
  type: "button", "aria-pressed": h === 0, style: `--query: ${colour(h)}`,
  onclick() {
    if (state.on.has(h) && state.on.size > 1) state.on.delete(h); else state.on.add(h);
    chips.forEach((chip, i) => chip.setAttribute("aria-pressed", state.on.has(i)));
    draw();
  },
}, html("i", { style: `background: ${colour(h)}` }), names ? `${h + 1} ${title(h)}` : title(h)));

// a bar for each chosen head: alone it has its weight above, among others its number below
const bars = () => [words(keys.map((token, j) => html("span", {
  class: "key", title: chosen().map((h) => `${title(h)}: ${show(row(h)[j])}`).join(", "),
}, html("span", { class: "bars", "aria-hidden": true }, ...chosen().map((h) => html("span", {},
  state.on.size > 1 ? null : html("small", {}, show(row(h)[j])),
  html("i", { style: `height: ${row(h)[j] * 54}px; background: ${colour(h)}` }),
  state.on.size > 1 ? html("small", {}, h + 1) : null))), html("span", {}, token))))];

// all words at once, one map for each head; the row of the word that looks is framed
const maps = () => chosen().map((h) => {
  const size = Math.min(250 / keys.length, 28), named = size > 11;
  const [left, top] = named ? [90, 76] : [4, 4];
  const width = left + keys.length * size + (named ? 40 : 4);
  const cells = weights[state.layer][h].flatMap((line, i) => line.map((weight, j) =>
    weight >= 0.005 && svg("rect", { x: j * size, y: i * size, width: size, height: size, fill: colour(h), "fill-opacity": weight })));
  const frame = (y, n, width) => svg("rect", { x: 0, y: y * size, width: keys.length * size, height: n * size, fill: "none", stroke: "currentColor", "stroke-width": width });
  const names = named && [
    ...queries.map((token, i) => svg("text", { x: -5, y: (i + 0.5) * size + 4, "text-anchor": "end" }, cut(token, 12))),
    ...keys.map((token, j) => svg("text", { transform: `translate(${(j + 0.6) * size} -6) rotate(-55)` }, cut(token, 12)))];
  const map = svg("svg", {
    viewBox: `${-left} ${-top} ${width} ${top + queries.length * size + 4}`, "aria-hidden": true,
    onpointermove(event) {
      const [j, i] = spot(event, map).map((x) => Math.floor(x / size));
      if (weights[0][0][i]?.[j] != null)
        say(`${title(h)}: ${word(queries[i])} gives ${show(weights[state.layer][h][i][j])} to ${word(keys[j])}.`);
    },
    onclick(event) { pick(clamp(Math.floor(spot(event, map)[1] / size), 0, queries.length - 1)); },
  }, ...cells.filter(Boolean), frame(0, queries.length, 0.5), frame(state.query, 1, 2), ...(names || []));
  map.style.maxWidth = `${1.2 * width}px`;
  return html("div", { class: "map" }, html("div", {}, title(h)), map);
});

const numbers = () => [html("table", {},
  html("tr", {}, html("th", { scope: "col" }, "key"), ...chosen().map((h) => html("th", { scope: "col" }, title(h)))),
  ...keys.map((token, j) => html("tr", {}, html("th", { scope: "row" }, token),
    ...chosen().map((h) => html("td", {}, show(row(h)[j]))))))];

function draw() {
  place.className = state.as;
  place.replaceChildren(...{ bars, maps, numbers }[state.as]());
  const rows = chosen().map(row);
  note("weights", rows);
  Object.assign(root.dataset, { query: state.query, layer: state.layer, heads: chosen().join(" ") });
  const best = rows.map((line, i) => {
    const order = line.map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]).slice(0, rows.length > 2 ? 1 : 3);
    const listed = order.map(([w, j]) => `${word(keys[j])} ${show(w)}`).join(", ");
    return (chips.length > 1 ? `by ${title(chosen()[i])}, ` : "") + `at ${listed}`;
  });
  say(`${word(queries[state.query])} looks${chips.length > 1 ? "," : ""} ${best.join("; ")}.`);
}

// words in the direction of their script
const words = (nodes) => html("div", { class: "words", dir: "auto" }, ...nodes);
const line = (name, nodes) => html("div", { role: "group", "aria-label": name }, html("b", {}, name), words(nodes));
const layer = weights.length > 1 ? slider("layer", {
  min: 1, max: weights.length, step: 1, value: 1, say: (x) => show(x, 0),
  input: (x) => { state.layer = x - 1; draw(); },
}) : null;

const pick = roving(who, (i) => { state.query = i; draw(); });
who.forEach((button, i) => button.addEventListener("pointerenter", (event) =>
  event.pointerType === "mouse" && pick(i)));
arrows(chips);
mount(layer, chips.length > 1 ? line("heads", chips) : null, line("who looks", who),
  choice("at whom", [["bars", "bars"], ["maps", "map"], ["numbers", "numbers"]], "bars", (key) => { state.as = key; draw(); }), place);
pick(data.first);
