// What every figure shares. Around it stands: (() => { const root = …; const css = …; base; figure })()
// A figure reads `data`, builds nodes with html() and svg(), and calls mount() once.
const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);

function build(create, tag, attributes, children) {
  const node = create(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

// html("p", {class: "x", onclick: f}, "text", node) and the same for SVG
const html = (tag, attributes, ...children) =>
  build((name) => document.createElement(name), tag, attributes, children);
const svg = (tag, attributes, ...children) =>
  build((name) => document.createElementNS("http://www.w3.org/2000/svg", name), tag, attributes, children);

// numbers as the book prints them, with a true minus
const show = (x, digits = 2) =>
  (Math.abs(x) < 0.5 * 10 ** -digits ? 0 : x).toFixed(digits).replace("-", "−");
// a weight; one that is not 0 is not called 0
const share = (x) => (x > 0 && x < 0.005 ? "<0.01" : show(x));
const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
// a word in a sentence, whatever its direction
const word = (token) => `\u2068“${token}”\u2069`;
// numbers for tests: note("weights", …) fills data-weights
const note = (name, numbers) => {
  root.dataset[name] = [numbers].flat(Infinity).map((x) => x.toFixed(4)).join(" ");
};

function softmax(scores) {
  const top = Math.max(...scores);
  if (top === -Infinity) return scores.map(() => 0); // a row that may look at nothing
  const powers = scores.map((s) => Math.exp(s - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / sum);
}

// a labelled slider; say(value) stands beside it and is read aloud; .set(value) moves it
function slider(label, { min, max, step, value, say = (x) => show(x), input }) {
  const output = html("output", {});
  const range = html("input", { type: "range", min, max, step, oninput: () => moved() });
  const shown = () => {
    output.textContent = say(+range.value);
    range.setAttribute("aria-valuetext", say(+range.value));
  };
  const moved = () => (shown(), input(+range.value));
  const node = html("label", { class: "dial" }, html("span", {}, label), range, output);
  node.show = (x) => { range.value = x; shown(); }; // without calling input
  node.set = (x) => { range.value = x; moved(); };
  node.show(value);
  return node;
}

// one of several: radio buttons under one name; .set(key) chooses without calling input
let groups = 0;
const unique = Math.random().toString(36).slice(2);
function choice(legend, options, value, input) {
  const name = `mha-${unique}-${groups++}`;
  const radios = options.map(([key]) => html("input", {
    type: "radio", name, value: key, onchange: () => input(key),
  }));
  const node = html("fieldset", {}, html("legend", {}, legend),
    ...options.map(([, text], i) => html("label", {}, radios[i], html("span", {}, text))));
  node.set = (key) => radios.forEach((radio, i) => { radio.checked = options[i][0] === key; });
  node.set(value);
  return node;
}

// many nodes, one stop of the Tab key: arrow keys go on from there, `columns` a row
function arrows(nodes, columns = 1, moved = () => {}) {
  const stop = (i) => nodes.forEach((node, j) => { node.tabIndex = i === j ? 0 : -1; });
  nodes.forEach((node, i) => {
    node.addEventListener("focus", () => stop(i));
    node.addEventListener("keydown", (event) => {
      const on = getComputedStyle(node.parentNode).direction === "rtl" ? -1 : 1;
      const step = { ArrowRight: on, ArrowLeft: -on, ArrowDown: columns, ArrowUp: -columns }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = (i + step + nodes.length) % nodes.length;
      nodes[next].focus();
      moved(next);
    });
  });
  stop(0);
  return stop;
}

// below the task: how far the reader is from its target, aim(text), or aim(text, true)
const target = html("p", { class: "aim", hidden: true });
function aim(text, reached = false) {
  target.hidden = false;
  target.textContent = `${reached ? "✓ Done. " : "○ "}${text}`;
  target.classList.toggle("reached", reached);
}

// the line below a figure that says what it shows now, also to a screen reader, which
// hears there too that the target is reached
const readout = html("p", { class: "readout", "aria-live": "polite" });
const say = (text) => readout.replaceChildren(text,
  ...(target.classList.contains("reached") ? [html("span", { class: "unseen" }, ` ${target.textContent}`)] : []));

function mount(task, ...nodes) {
  root.querySelector(".still").hidden = true;
  root.append(html("style", {}, css), html("div", { class: "live" },
    html("p", { class: "task" }, html("b", {}, "Try this: "), task), target, ...nodes.filter(Boolean), readout));
  // JupyterLab would take a key pressed on a button for one of its shortcuts
  for (const node of root.querySelectorAll("button, input, [tabindex]")) node.dataset.lmSuppressShortcuts = "true";
}
