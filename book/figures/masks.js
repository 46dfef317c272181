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
const choose = choice("start", [...starts.map(([name]) => [name, name]), [OWN, OWN]], starts[0][0], (name) => {
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

function draw() {
  const A = scores.map((row, i) => softmax(row.map((s, j) => (mask[i][j] ? s : -Infinity))));
  A.forEach((row, i) => {
    row.forEach((weight, j) => {
      const cell = cells[i][j];
      cell.textContent = mask[i][j] ? show(weight) : "0";
      cell.style.setProperty("--weight", `${50 * weight}%`);
      cell.setAttribute("aria-pressed", !!mask[i][j]);
      cell.setAttribute("aria-label", `${queries[i]} looks at ${keys[j]}: ${mask[i][j] ? show(weight) : "covered, 0"}`);
    });
    sums[i].textContent = show(row.reduce((a, b) => a + b, 0));
    sums[i].className = mask[i].some(Boolean) ? "" : "empty";
  });
  const empty = queries.filter((_, i) => !mask[i].some(Boolean));
  note("weights", A);
  note("sums", A.map((row) => row.reduce((a, b) => a + b, 0)));
  root.dataset.mask = mask.map((row) => row.join("")).join(" ");
  root.dataset.empty = empty.length;
  const open = mask.flat().reduce((a, b) => a + b, 0);
  say(`${open} of ${mask.flat().length} pairs are open; ` + (empty.length
    ? `${empty.map(word).join(", ")} may look at nothing: weights 0, sum 0.`
    : "every row sums to 1."));
}

arrows(cells.flat(), keys.length);
mount(choose, html("div", { class: "grid", role: "group", "aria-label": "the mask: rows look at columns, pressed means may look" }, table));
draw();
