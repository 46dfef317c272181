// The maps of a trained layer, one version of attention at a time. Repairing its code keeps
// the weights, and only the accuracy changes.
const { layers } = data;
const heads = layers[0].maps.length, n = Math.round(Math.sqrt(layers[0].maps[0].length));
const state = { k: 0, code: "bug" };
const ruined = layers.flatMap(({ repaired }, k) => (repaired < 0.6 ? [k] : []));
const found = new Set();

const cells = Array.from({ length: heads }, () => Array.from({ length: n * n }, (_, p) =>
  svg("rect", { x: p % n, y: Math.floor(p / n), width: 1, height: 1 })));
const maps = cells.map((all, r) => html("div", {},
  svg("svg", { viewBox: `-.1 -.1 ${n + 0.2} ${n + 0.2}`, "aria-hidden": "true" }, ...all,
    svg("path", { d: `M0 0h${n}v${n}h-${n}z` })), html("span", {}, `head ${r + 1}`)));
const bar = html("i"), share = html("output"), wrong = html("p"), laws = html("p", { class: "laws" });

// where most queries of all heads attend to, in words
function pattern({ maps }) {
  const mirrored = maps.map((map) => Array.from({ length: n }, (_, i) => {
    const row = [...map.slice(i * n, i * n + n)].map((letter) => parseInt(letter, 16));
    return row.indexOf(Math.max(...row)) === n - 1 - i;
  })).flat().filter(Boolean).length;
  return `${mirrored} of ${heads * n} rows have their largest weight on the anti-diagonal`;
}

function draw() {
  const { k, code } = state, layer = layers[k];
  const accuracy = code === "bug" ? layer.accuracy : layer.repaired;
  cells.forEach((all, r) => all.forEach((cell, p) =>
    cell.setAttribute("fill-opacity", parseInt(layer.maps[r][p], 16) / 15)));
  bar.style.width = `${100 * accuracy}%`;
  bar.classList.toggle("bad", accuracy < 0.6);
  share.textContent = show(accuracy, 3);
  wrong.textContent = layer.wrong || "Nothing is wrong in this one.";
  laws.replaceChildren(html("b", {}, `laws broken by the ${code === "bug" || !layer.wrong ? "code" : "code before its repair"}: ${layer.laws.length}`),
    layer.laws.length ? ` (${layer.laws.join(", ")})` : "");
  if (code === "repaired" && ruined.includes(k)) found.add(k);
  Object.assign(root.dataset, { layer: k, code, accuracy: accuracy.toFixed(3), found: found.size });
  aim(`${found.size} of ${ruined.length} found.`, found.size === ruined.length);
  say(`${layer.label}${code === "bug" ? "" : ", repaired"}: accuracy ${show(accuracy, 3)}; ${pattern(layer)}.`);
}

const codes = choice("code", [["bug", "as trained"], ["repaired", "repaired"]], "bug", (code) => { state.code = code; draw(); });
mount(`look at the maps and guess which versions are ruined by a repair of the code. Then repair them: ${ruined.length} fall below 0.6.`,
  choice("attention", layers.map(({ label }, k) => [k, label]), 0, (k) => {
    Object.assign(state, { k, code: "bug" });
    codes.set("bug");
    draw();
  }),
  wrong, html("div", { class: "maps" }, ...maps), codes,
  html("div", { class: "dial" }, html("span", {}, "accuracy"), html("div", { class: "track" }, bar), share), laws);
draw();
