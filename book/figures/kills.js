// The kill table: a row for each law, a column for each wrong version. A click or Enter in
// a row chooses its law; a click on a column, or walking there, asks about its version.
const { members, laws, killed } = data;
const plain = (name) => name.replaceAll("_", " ");
const catches = (l) => members.filter((_, m) => killed[m][l]).length;
const breaks = (m) => laws.filter((_, l) => killed[m][l]);
const strongest = laws.reduce((best, _, l) => (catches(l) > catches(best) ? l : best), 0);
const chosen = new Set(catches(strongest) < members.length ? [strongest] : []);
const spot_ = { law: -1, member: -1 }; // where the reader is; −1 is the head of a row or column

// the fewest laws that detect all: the version that breaks fewest needs one of them
function fewest(left, k) {
  if (!left.length) return true;
  const hardest = left.reduce((a, b) => (breaks(b).length < breaks(a).length ? b : a));
  return k > 0 && laws.some((_, l) => killed[hardest][l] && fewest(left.filter((m) => !killed[m][l]), k - 1));
}
const all = members.map((_, m) => m);
let best = 0;
const least = () => { while (!best || !fewest(all, best)) best++; return best; };

const cell = (role, attributes, ...children) => html("div", { role, tabindex: -1, ...attributes }, ...children);
const heads = members.map((name) => cell("columnheader", { "aria-label": plain(name) }, html("span", {}, plain(name))));
const lines = laws.map((name, l) => {
  const [more, law] = [html("small"), html("span", {}, plain(name))];
  const head = cell("rowheader", {}, law, more);
  const cells = members.map((member, m) => cell("gridcell", killed[m][l] ? { class: "kill", "aria-label": "detected" } : { "aria-label": "missed" }, html("i")));
  return { head, more, cells, node: html("div", { role: "row", class: "law" }, head, ...cells) };
});
const corner = cell("columnheader", { class: "corner" }, "law");
const grid = html("div", { role: "grid", class: "grid", style: `--n: ${members.length}`, "aria-label": "laws and the wrong versions they detect", "aria-multiselectable": "true" },
  html("div", { role: "row", class: "heads" }, corner, ...heads), ...lines.map(({ node }) => node));
const rows = [[corner, ...heads], ...lines.map(({ head, cells }) => [head, ...cells])];
const where = (node) => {
  const [x, y] = [node?.closest("[role=row]"), node?.closest("[tabindex]")];
  const l = rows.findIndex((row) => row[0].parentNode === x);
  return l < 0 ? null : [l - 1, rows[l].indexOf(y) - 1];
};
const bar = html("i"), count = html("output"), asked = html("div", { class: "asked" });

function move(law, member) {
  rows[spot_.law + 1][spot_.member + 1].tabIndex = -1;
  [spot_.law, spot_.member] = [clamp(law, -1, laws.length - 1), clamp(member, -1, members.length - 1)];
  const node = rows[spot_.law + 1][spot_.member + 1];
  node.tabIndex = 0;
  if (document.activeElement !== node) node.focus({ preventScroll: true });
  rows.forEach((row, r) => row.forEach((one, c) => one.classList.toggle("at", c > 0 && c - 1 === spot_.member)));
  ask();
}

function ask() {
  const { law, member } = spot_;
  if (member < 0) asked.textContent = law < 0 ? "" : `${plain(laws[law])} detects ${catches(law)} of ${members.length}.`;
  else asked.textContent = `${plain(members[member])} breaks ${breaks(member).length}: ${breaks(member).map(plain).join(", ")}.`;
  if (member >= 0) say(asked.textContent);
}

function toggle(l) {
  if (!chosen.delete(l)) chosen.add(l);
  draw();
}

function draw() {
  const caught = members.map((_, m) => [...chosen].some((l) => killed[m][l]));
  const left = caught.filter((is) => !is).length;
  lines.forEach(({ node, head, more }, l) => {
    const added = members.filter((_, m) => killed[m][l] && !caught[m]).length;
    const is = chosen.has(l);
    node.classList.toggle("chosen", is);
    node.setAttribute("aria-selected", is);
    more.textContent = is ? "✓" : added ? `+${added}` : "";
    head.setAttribute("aria-label", `${plain(laws[l])}, detects ${catches(l)}, ${is ? "chosen" : `${added} more`}`);
  });
  members.forEach((name, m) => {
    rows.forEach((row) => row[m + 1].classList.toggle("caught", caught[m]));
    heads[m].setAttribute("aria-label", `${plain(name)}: ${caught[m] ? "detected" : "not detected"}`);
  });
  root.dataset.left = left;
  bar.style.width = `${(100 * (members.length - left)) / members.length}%`;
  count.textContent = `${members.length - left} of ${members.length} detected`;
  aim(left ? `${left} wrong ${left === 1 ? "version is" : "versions are"} left with ${chosen.size} ${chosen.size === 1 ? "law" : "laws"}.`
    : chosen.size > least() ? `All are detected by ${chosen.size} laws. It can be done with ${best}.` : `All are detected by ${chosen.size} ${best === 1 ? "law" : "laws"}, and fewer cannot do it.`,
  !left && chosen.size <= least());
  say(`${chosen.size} ${chosen.size === 1 ? "law" : "laws"} chosen, ${members.length - left} of ${members.length} wrong versions detected, ${left} left.`);
}

grid.addEventListener("keydown", (event) => {
  const { law, member } = spot_;
  const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], Home: [0, -member - 1], End: [0, members.length] }[event.key];
  if (step) move(law + step[0], member + step[1]);
  else if (event.key === "Enter" || event.key === " ") { if (law >= 0) toggle(law); } else return;
  event.preventDefault();
});
grid.addEventListener("focusin", (event) => {
  const place = where(event.target);
  if (place && (place[0] !== spot_.law || place[1] !== spot_.member)) move(...place);
});
grid.addEventListener("click", (event) => {
  const place = where(event.target);
  if (!place) return;
  move(...place);
  if (place[0] >= 0) toggle(place[0]);
});
// the heads of the columns are narrow: a finger or a mouse slides along them
const slide = (event) => {
  const x = event.clientX;
  const m = heads.findIndex((head) => x < head.getBoundingClientRect().right);
  if (x >= heads[0].getBoundingClientRect().left) move(-1, m < 0 ? members.length - 1 : m);
};
const strip = heads[0].parentNode;
strip.addEventListener("pointerdown", (event) => (strip.setPointerCapture(event.pointerId), event.preventDefault(), slide(event)));
strip.addEventListener("pointermove", (event) => strip.hasPointerCapture(event.pointerId) && slide(event));

mount(`detect all ${members.length} wrong versions with as few laws as you can. ${chosen.size ? "The law that detects most is chosen; choose others" : "Choose laws"} by their rows.`,
  html("div", { class: "dial" }, html("span", {}, "detected"), html("div", { class: "track" }, bar), count), grid, asked);
rows[1 + strongest][0].tabIndex = 0;
spot_.law = strongest;
draw();
ask();
