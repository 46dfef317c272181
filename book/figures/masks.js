// A table of cells to open and to cover; each row shows its weights and their sum.
const { scores, queries, keys, starts } = data;
const OWN = "own";
const copy = (mask) => mask.map((row) => [...row]);
let mask = copy(starts[0][1]), own = copy(mask);
let paint = null, from = null; // the brush, and the cell where it was last

const cells = queries.map((_, i) => keys.map((_, j) => html("button", {
  type: "button",
  onclick: (event) => event.detail === 0 && set(i, j, 1 - mask[i][j]), // a key, not a pointer
  onpointerdown(event) {
    if (event.button) return;
    event.target.releasePointerCapture(event.pointerId); // touch would keep it
    event.preventDefault();
    event.target.focus();
    [paint, from] = [1 - mask[i][j], [i, j]];
    set(i, j, paint);
  },
})));
const sums = queries.map(() => html("td", {}));
const choose = choice("mask", [...starts.map(([name]) => [name, name]), [OWN, OWN]], starts[0][0], (name) => {
  mask = copy(name === OWN ? own : starts.find(([other]) => other === name)[1]);
  draw();
});

function set(i, j, value) {
  if (mask[i][j] === value) return;
  mask[i][j] = value;
  own = copy(mask);
  choose.set(OWN);
  draw();
}

// a quick hand leaves cells out, so we paint all that lie between
function over(event) {
  if (paint === null) return;
  const cell = document.elementFromPoint(event.clientX, event.clientY);
  const at = cells.flat().indexOf(cell);
  if (at < 0) return;
  const [i, j] = from, [y, x] = [Math.floor(at / keys.length) - i, (at % keys.length) - j];
  const steps = Math.max(Math.abs(x), Math.abs(y), 1);
  for (let t = 1; t <= steps; t++) set(i + Math.round((y * t) / steps), j + Math.round((x * t) / steps), paint);
  from = [i + y, j + x];
}
const table = html("table", { onpointermove: over },
  html("tr", {}, html("td", {}), ...keys.map((key) => html("th", { scope: "col" }, key)), html("th", { scope: "col" }, "sum")),
  ...queries.map((query, i) => html("tr", {}, html("th", { scope: "row" }, query),
    ...cells[i].map((cell) => html("td", {}, cell)), sums[i])));
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { paint = null; });

// the task: a sum that is not 1, or, where a row is empty from the start, the way back
const gap = starts[0][1].findIndex((row) => !row.some(Boolean));
const told = (A) => {
  const row = gap < 0 ? mask.findIndex((row) => !row.some(Boolean)) : gap;
  const open = row < 0 ? [] : mask[row].flatMap((is, j) => (is ? [j] : []));
  if (gap < 0) aim(row < 0 ? "Every sum is 1: the weights that are left grow." : `The sum of ${word(queries[row])} is 0, the only other value: nothing is left in its row.`, row >= 0);
  else aim(open.length === 1 ? `${word(keys[open[0]])} gets ${show(A[row][open[0]])}: alone in its row, any score becomes a weight of 1.`
    : open.length ? `In the row of ${word(queries[row])} ${open.length} keys are open; leave one.` : `The row of ${word(queries[row])} is empty and sums to 0.`, open.length === 1);
};

function draw() {
  const A = scores.map((row, i) => softmax(row.map((s, j) => (mask[i][j] ? s : -Infinity))));
  A.forEach((row, i) => {
    row.forEach((weight, j) => {
      const cell = cells[i][j];
      cell.textContent = mask[i][j] ? show(weight) : "0";
      tint(cell, weight);
      cell.setAttribute("aria-pressed", !!mask[i][j]);
      cell.setAttribute("aria-label", `${queries[i]} attends to ${keys[j]}: ${mask[i][j] ? show(weight) : "covered, 0"}`);
    });
    sums[i].textContent = show(row.reduce((a, b) => a + b, 0));
    sums[i].className = mask[i].some(Boolean) ? "" : "empty";
  });
  const empty = queries.filter((_, i) => !mask[i].some(Boolean));
  note("weights", A);
  note("sums", A.map((row) => row.reduce((a, b) => a + b, 0)));
  root.dataset.mask = mask.map((row) => row.join("")).join(" ");
  root.dataset.empty = empty.length;
  told(A);
  const open = mask.flat().reduce((a, b) => a + b, 0);
  say(`${open} of ${mask.flat().length} pairs are open; ` + (empty.length
    ? `${empty.map(word).join(", ")} may attend to nothing: weights 0, sum 0.`
    : "every row sums to 1."));
}

arrows(cells.flat(), keys.length);
mount(gap < 0 ? "paint cells with mouse, finger or space bar until the sum of a row is not 1. What is it then?"
  : `open one cell in the empty row of ${word(queries[gap])}. Which weight does it get? Guess first.`,
  choose, html("div", { class: "grid", role: "group", "aria-label": "the mask: rows attend to columns, pressed means may attend" }, table));
draw();
