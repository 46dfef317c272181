// Rings are nights, dots the best guesses of both glows; a slider sets the weights of a head.
const { nights, names } = data;
const UNIT = 62, REACH = 1.03 * UNIT * Math.max(1, ...nights.flat().map(Math.abs));
const state = { m: 1, left: [...data.left] };
const at = (x, y) => `${(x * UNIT).toFixed(1)} ${(-y * UNIT).toFixed(1)}`;

// the cloud: names of the axes stand outside of it, what the marks mean above it
const cloud = svg("svg", { viewBox: `${-REACH - 4} ${-REACH - 4} ${2 * REACH + 8} ${2 * REACH + 8}`, "aria-hidden": true });
const path = (name, d = "") => cloud.appendChild(svg("path", { class: name, d }));
path("grid", `M${-REACH} 0H${REACH}M0 ${-REACH}V${REACH}`);
path("night", nights.map(([x, y]) => `M${at(x, y)}m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0`).join(""));
const [miss, guess] = [path("miss"), path("guess")];
const legend = html("div", { class: "legend" }, html("span", { class: "ring" }), "a night", html("span", { class: "dot" }), "best guess from the head output");

const heads = state.left.map((w, r) => slider(`head ${r + 1}: weight of the ${names[0]}`, {
  min: 0, max: 1, step: 0.01, value: w, input: (x) => { state.left[r] = x; draw(); },
}));
const meter = (label) => {
  const [bar, track, output] = [html("i"), html("div"), html("output")];
  track.append(bar);
  return { bar, output, node: html("div", { class: "dial meter" }, html("span", {}, label), track, output) };
};
const meters = [...names.map((name) => meter(`R² ${name}`)), meter("sum of both")];
meters[2].node.classList.add("both");

function draw() {
  const looks = state.left.slice(0, state.m).map((w) => [w, 1 - w]), [[a, b]] = looks;
  const apart = state.m > 1 ? Math.abs(state.left[0] - state.left[1]) : 0;
  // a night has the same variance in every direction: one average shows its shadow on one line
  const size = a * a + b * b, known = apart ? [1, 1] : [a * a / size, b * b / size];
  const sum = known[0] + known[1];
  const guesses = nights.map(([x, y]) => {
    const z = (a * x + b * y) / size;
    return apart ? [x, y] : [a * z, b * z];
  });
  guess.setAttribute("d", guesses.map(([x, y]) => `M${at(x, y)}h0`).join(""));
  miss.setAttribute("d", guesses.map(([x, y], k) => `M${at(x, y)}L${at(...nights[k])}`).join(""));
  heads[1].classList.toggle("off", state.m < 2);
  meters.forEach(({ bar, output }, j) => {
    bar.style.width = `${[...known.map((x) => 100 * x), 50 * sum][j]}%`;
    output.textContent = show([...known, sum][j]);
  });
  note("looks", looks);
  note("known", known);
  aim(apart ? "Two heads with different weights know both glows. Now move their weights towards each other."
    : `The sum of both is ${show(sum)}.`, apart > 0);
  const given = looks.map((row, r) => `Head ${r + 1} gives ${show(row[0])} to the ${names[0]} and ${show(row[1])} to the ${names[1]}.`);
  say(`${given.join(" ")} ` + (state.m < 2 ? "All guesses lie on one line."
    : apart ? `To take the averages apart, the output projection needs numbers up to ${show(Math.max(...looks.flat()) / apart, 1)}.`
    : "The heads are equal: one average."));
}

mount("make the sum of both R² as large as you can with one head, and then with two.",
  choice("heads", [[1, "one"], [2, "two"]], 1, (m) => { state.m = m; draw(); }),
  html("div", { class: "scene" },
    html("div", {}, ...heads, ...meters.map(({ node }) => node)),
    html("div", {}, html("div", { class: "title" }, `${names[0]} glow →, ${names[1]} glow ↑`), legend, cloud)));
draw();
