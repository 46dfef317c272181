// One query reads its keys block by block; three numbers are all it keeps.
const { labels, scores, values, block } = data;
const n = scores.length, SIZES = [1, 2, 3, n];
const state = { size: block, read: 0, rescale: "yes" };
const blocks = (size = state.size) => Math.ceil(n / size);
const whole = softmax(scores).reduce((all, p, j) => all + p * values[j], 0);

// what the query keeps after `count` blocks, and the last factor for the old sums
function keep(count, size = state.size, rescale = state.rescale) {
  let m = -Infinity, l = 0, o = 0, factor = 1, due = 1;
  for (let k = 0; k < count; k++) {
    const part = scores.slice(k * size, (k + 1) * size);
    const larger = Math.max(m, ...part);
    due = k === 0 ? 1 : Math.exp(m - larger);
    factor = rescale === "yes" ? due : 1;
    l *= factor;
    o *= factor;
    part.forEach((s, i) => {
      l += Math.exp(s - larger);
      o += Math.exp(s - larger) * values[k * size + i];
    });
    m = larger;
  }
  return { m, l, o: l ? o / l : 0, factor, due };
}

// it opens at the first block that makes the old sums shrink
const shrinks = Array.from({ length: blocks() }, (_, k) => k + 1).find((k) => keep(k).factor < 1);
state.read = shrinks || 1;

const columns = labels.map((label, j) => {
  const [bar, old, tall] = [html("i"), html("u"), html("small")];
  const node = html("div", { class: "key" }, html("div", { class: "room" }, old, tall, bar), html("span", { class: "name" }, label),
    html("span", {}, show(scores[j], 1)), html("span", { class: "value" }, show(values[j], 1)));
  return { bar, old, tall, node };
});
const picture = html("div", { class: "columns", "aria-hidden": true },
  html("div", { class: "names" }, html("div", { class: "room" }), html("span", { class: "name" }, "key"), html("span", {}, "score"), html("span", { class: "value" }, "value")),
  ...columns.map(({ node }) => node));
const kept = (sign, text, role) => { const number = html("b"); return [number, html("div", { class: role }, html("span", {}, sign), number, html("small", {}, text))]; };
const [top, topBox] = kept("m", "largest score so far", "");
const [sum, sumBox] = kept("ℓ", "sum of exp(s − m)", "weight");
const [answer, answerBox] = kept("o / ℓ", "output so far", "output");

const tried = new Map(); // size: is the answer right without rescaling?
function draw() {
  const { m, l, o, factor, due } = keep(state.read), before = keep(Math.max(0, state.read - 1)).m;
  const seen = Math.min(n, state.read * state.size), old = Math.min(n, (state.read - 1) * state.size);
  columns.forEach(({ bar, old: mark, tall, node }, j) => {
    const height = j < seen ? Math.exp(scores[j] - m) : 0, was = j < old ? Math.exp(scores[j] - before) : 0;
    bar.style.height = `${100 * height}%`;
    mark.style.height = `${100 * was}%`;
    mark.hidden = !(was > height + 0.005);
    tall.style.bottom = `${100 * height}%`;
    tall.textContent = j < seen ? show(height) : "";
    node.classList.toggle("seen", j < seen);
    node.classList.toggle("now", j < seen && j >= old);
    node.classList.toggle("edge", j % state.size === 0 && j > 0);
  });
  [top.textContent, sum.textContent, answer.textContent] = seen ? [show(m, 1), show(l), show(o)] : ["−∞", "0", "–"];
  note("kept", seen ? [m, l, o] : []);
  const end = seen === n, right = Math.abs(o - whole) < 0.005;
  answerBox.classList.toggle("wrong", end && !right);
  if (end && state.rescale === "no") tried.set(state.size, right);
  const list = SIZES.filter((k) => tried.has(k)).map((k) => `${k === n ? "all" : k} ${tried.get(k) ? "right" : "✗ wrong"}`).join(", ");
  aim(tried.size === SIZES.length ? `${list}. The answer is right where the largest score is in the first block: then there is nothing to rescale.`
    : `Tried without rescaling: ${list || "none yet"}.`, tried.size === SIZES.length);
  say(!seen ? "Nothing is read yet: m = −∞, ℓ = 0." : `After ${seen} of ${n} keys` +
    (state.read > 1 ? `: the old sums were ${factor === due ? "" : "not "}multiplied by ${show(due)}${factor === due ? "" : ", as they should be"}` : "") +
    (!end ? "." : `. The answer is ${show(o)}; the softmax over all keys at once gives ${show(whole)}${right ? "." : ": wrong."}`));
}
const reader = slider("blocks read", { min: 0, max: blocks(), step: 1, value: state.read, say: (x) => `${show(x, 0)} of ${blocks()}`,
  input: (x) => { state.read = x; draw(); } });
const sizes = choice("keys in a block", SIZES.map((k) => [k, k === n ? "all" : k]), block, (k) => {
  state.size = k;
  reader.querySelector("input").max = blocks();
  reader.set(Math.min(state.read, blocks()));
});
const fix = choice("rescale the old sums", [["yes", "yes"], ["no", "forget it"]], "yes", (key) => { state.rescale = key; draw(); });
mount("forget to rescale, and read to the end with each block size. Which sizes still give the right answer?",
  html("div", { class: "title", "aria-hidden": true }, "exp(s − m) of each key read so far; dashed: as it was one block earlier"), picture, reader, html("div", { class: "choices" }, sizes, fix), html("div", { class: "kept" }, topBox, sumBox, answerBox));
draw();
