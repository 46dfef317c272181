// The live house: the numbers of one layer on their sheet, for a reader to ask and to change.
// It knows no formula: model.js computes, explain.js says where a number is from, laws.js judges.
import { differs, divisor, forward, masks } from "./model.js";
import { digits, explainer, num, short } from "./explain.js";
import { laws } from "./laws.js";

const { words, matrices, stages, bugs, follow, part } = data;
const { explain, name, edits } = explainer(data);
const MOST = 99, last = stages.length - 1; // the largest number that may be typed in
const stageOf = (id) => stages.findIndex((stage) => stage.id === matrices[id].stage);
const bugOf = (id) => bugs.find((bug) => bug.id === id);
// names such as W_O with their index below, and powers such as e^3.5 with theirs above
const rich = (text) => text.split(/(_\w+|\^−?[\d.]+|\^\([^)]*\))/).map((piece, k) =>
  (k % 2 ? html(piece[0] === "_" ? "sub" : "sup", {}, piece.slice(1).replace(/^\((.*)\)$/, "$1")) : piece));

// what the reader has chosen so far
function beginning() {
  const input = { ...JSON.parse(data.input), mask: masks.open(words.length), scale: data.scale };
  const all = forward(input); // of which some may be put in by hand, keys as Kt
  input.given = structuredClone(Object.fromEntries(data.given.map((id) => [id[0], all[id[0]]])));
  return { input, bug: "", mystery: false, guess: "", marked: false, head: 0 };
}
const state = {
  ...beginning(), at: part === "whole" ? 0 : last,
  focus: null, // where the keys go: [id, i, j]
  shown: null, // what is explained: the same, or the cell under the pointer
  typed: null, // what is being typed: {text, old}
};
let ids = Object.keys(data.places.wide.at); // of the matrices that are shown
let found, right; // all numbers, and those without the bug
const of = (all, id) => (matrices[id].heads ? all[id][state.head] : all[id]);

// ------------------------------------------------------------- what can be chosen
const button = (text, onclick, label) => html("button", { type: "button", onclick, "aria-label": label }, text);
const back = button("◀", () => walk(state.at - 1), "previous step");
const next = button("▶", () => walk(state.at + 1), "next step");
const everything = button("all steps", () => walk(last));
const count = html("b", { class: "count" });
const steps = html("span", { class: "walk", hidden: !data.walk }, back, count, next, everything);
const told = html("p", { class: "told", "aria-live": "polite" });
const heads = choice("Head", [["0", "1"], ["1", "2"]], "0", (r) => { state.head = +r; update(); });
const scaling = button("divide by √dₖ", () => { state.input.scale = !state.input.scale; update(); });
scaling.hidden = !ids.includes("T");
heads.hidden = data.alone || !ids.some((id) => matrices[id].heads);
const menu = (act, label, ...options) => html("select", { onchange: ({ target }) => act(target.value), "aria-label": label },
  ...options.map(([value, text, hidden]) => html("option", { value, hidden }, text)));
const named = bugs.map((bug) => [bug.id, bug.name]), mystery = ["mystery", "a mystery bug: one of the above"];
const breaking = menu(damage, null, ["", "nothing is broken"], ...named, ...(bugs.length > 3 ? [mystery] : []));
const masking = menu((kind) => { state.input.mask = masks[kind](words.length); state.lent = false; update(); }, null, ["open", "nothing"], ["causal", "later words"], ["padding", "the last word"], ["", "chosen cells", true]);
const tools = html("div", { class: "tools" },
  html("label", { class: "breaks", hidden: !bugs.length }, "Break it: ", breaking), heads, scaling,
  html("label", { hidden: !ids.includes("mask") }, "Mask hides ", masking), button("back to the start", restart));
const guessing = menu(guess, "What is broken?", ["", "what is broken?"], ...named);
const telling = button("tell me", () => guess(state.bug));
const marking = button("mark wrong numbers", () => { state.marked = !state.marked; update(); });
const less = button("−", () => step(-1), "one less"), more = button("+", () => step(1), "one more");
const frame = html("div", { class: "sheet" });
const verdicts = data.laws.map((law) => {
  const sign = html("b", { role: "img", "aria-label": "not asked yet:" }, "·"), why = html("span", { class: "why" });
  return { ...law, sign, why, node: html("li", {}, sign, html("span", {}, ...rich(law.name), html("small", {}, ` ch. ${law.chapter}`), why)) };
});
const heading = html("p", { class: "head", "aria-live": "polite" }, "Laws: checked once all steps are shown");
const court = html("div", { class: "court", hidden: !verdicts.length }, heading, html("ol", {}, ...verdicts.map((v) => v.node)));
const tally = button("", () => court.scrollIntoView({ block: "center" }));
const acts = html("div", { class: "acts", hidden: true }, tally, guessing, telling, marking); // of a layer that is broken

const drawn = {}; // the sheets, as they were drawn in Python
let layout, cells, grids;

function picture(layout) {
  const template = html("template", {});
  template.innerHTML = data.stills?.[layout] ?? "";
  return root.querySelector(`.mha-${layout} svg`) ?? template.content.firstChild;
}

// shows the sheet that fits; its numbers stay a picture until the reader comes near
function choose(wide) {
  if (layout === (wide ? "wide" : "narrow")) return;
  layout = wide ? "wide" : "narrow";
  drawn[layout] ??= picture(layout);
  drawn[layout].setAttribute("role", "group");
  frame.replaceChildren(drawn[layout]);
  root.dataset.layout = layout;
  ids = Object.keys(data.places[layout].at);
  if (cells) { build(); update(); }
}

function build() {
  const { at, cell: [w, h], bands } = data.places[layout], sheet = drawn[layout];
  sheet.querySelectorAll(".first, .cells").forEach((old) => old.remove());
  cells = {}; grids = {};
  Object.assign(state, { focus: null, shown: null, typed: null }); // the other sheet may lack them
  const band = ([x, y, wide]) => svg("rect", { class: "band", x, width: wide, height: h, y: y + follow * h, rx: 6 });
  const box = (id, M, i, j) => {
    const [x, y] = [at[id][0] + j * w, at[id][1] + i * h], size = 11.5;
    return svg("g", { role: "gridcell", tabindex: i + j ? -1 : 0, "data-id": id, "data-i": i, "data-j": j },
      svg("rect", { x: x + 1, y: y + 1, width: w - 2, height: h - 2, rx: 2.5 }),
      svg("text", { x: x + w / 2, y: y + h / 2 + 0.36 * size, style: `font-size: ${size}px` }, ""),
      svg("path", { d: `M${x + 3} ${y + h - 3}L${x + w - 3} ${y + 3}` }));
  };
  const matrix = (id) => {
    const M = of(found, id), [x, y] = at[id], { role, label, toggle } = matrices[id];
    cells[id] = M.map((row, i) => row.map((_, j) => box(id, M, i, j)));
    grids[id] = svg("g", { role: "grid", class: edits(id) ? "edit" : toggle ? "toggle" : "", style: `--role: var(--${role})`, "aria-label": label.replace(/[*]/g, "") },
      ...cells[id].map((row) => svg("g", { role: "row" }, ...row)),
      svg("rect", { class: "frame", x, y, width: w * M[0].length, height: h * M.length, rx: 4 }));
    return grids[id];
  };
  sheet.append(svg("g", { class: "cells" }, ...bands.map(band), ...ids.map(matrix)));
}

function paint(id) {
  const M = of(found, id), R = of(right, id), { role, toggle } = matrices[id];
  const finite = M.flat().filter(Number.isFinite), top = Math.max(...finite.map(Math.abs)) || 1;
  const places = digits(finite, data.places[layout].cell[0]), later = stageOf(id) > state.at;
  grids[id].classList.toggle("later", later);
  grids[id].classList.toggle("now", !!data.walk && stageOf(id) === state.at);
  M.forEach((row, i) => row.forEach((x, j) => {
    const node = cells[id][i][j], typing = state.typed && state.focus.join() === [id, i, j].join();
    const hidden = toggle ? !x : x === -Infinity || (id === "A" && !x && !state.input.mask[i][j]);
    const off = state.marked && !state.mystery && !toggle && differs(x, R[i][j]);
    const text = typing ? `${state.typed.text}▏` : later || hidden || toggle ? "" : short(x, places, role === "weight");
    const alpha = later || hidden || toggle ? 0 : role === "weight" ? clamp(x, 0.035, 1) : 0.06 + (0.26 * Math.abs(x)) / top;
    const tab = later || (state.stops?.[id] ?? "0,0") !== `${i},${j}` ? -1 : 0;
    const look = [text, alpha.toFixed(3), hidden && !later, off, later, tab].join();
    if (node.look === look) return; // only what changes is written
    node.look = look;
    const [box, words] = node.children, mark = `${hidden && !later ? "hidden" : ""}${off ? " off" : ""}`;
    words.firstChild.data = text;
    box.setAttribute("fill-opacity", alpha.toFixed(3));
    const ink = role !== "weight" || alpha < 0.475 ? "0" : alpha < 0.635 ? "1" : "2";
    if (words.dataset.ink !== ink) words.dataset.ink = ink;
    if (node.getAttribute("class") !== mark) node.setAttribute("class", mark);
    if (node.tabIndex !== tab) node.setAttribute("tabindex", tab);
    const says = toggle ? (x ? "yes" : "no") : hidden ? "hidden" : text;
    node.called ??= name(id, i, j);
    node.ariaLabel = later ? "" : `${node.called}: ${says}${off ? ", wrong" : ""}`;
  }));
}

function update() {
  found = forward(state.input, state.bug);
  right = state.bug ? forward(state.input) : found;
  ids.forEach(paint);
  heads.set(String(state.head));
  masking.value = Object.keys(masks).find((kind) => String(masks[kind](words.length)) === String(state.input.mask)) ?? "";
  scaling.setAttribute("aria-pressed", state.input.scale);
  breaking.value = state.mystery ? "mystery" : state.bug;
  acts.hidden = !state.bug;
  guessing.hidden = telling.hidden = !state.mystery;
  marking.hidden = state.mystery;
  marking.setAttribute("aria-pressed", state.marked);
  back.setAttribute("aria-disabled", state.at === 0); // a disabled button would lose the focus
  for (const node of [next, everything]) node.setAttribute("aria-disabled", state.at === last);
  count.textContent = `${state.at + 1} of ${stages.length}`;
  [crop, divide, measure, judge, light].forEach((show) => show());
}

// on a phone the sheet ends below what is filled so far
function crop() {
  const { width, height, ends, at } = data.places[layout], sheet = drawn[layout];
  const filled = ids.filter((id) => stageOf(id) <= state.at);
  const end = Math.max(...filled.map((id) => ends.find((end) => at[id][1] < end)));
  sheet.setAttribute("viewBox", `0 0 ${width} ${layout === "narrow" ? end : height}`);
  sheet.style.overflow = "hidden";
}

// the sheet says that scores are divided only where they are; a mystery stays one
function divide() {
  const told = state.mystery ? "" : state.bug, by = divisor(2, told, state.input.scale);
  const usual = by === divisor(2, "", true);
  for (const [name, is] of [["divided", usual], ["undivided", !usual]])
    drawn[layout].querySelectorAll(`.${name}`).forEach((node) => { node.style.display = is ? "" : "none"; });
}

const breach = (law, bug, all) => laws[law.id](state.input, bug, all, words, right);
function judge() {
  for (const law of verdicts) {
    const failure = breach(law, state.bug, found);
    law.node.className = failure ? "broken" : "";
    law.sign.textContent = failure ? "✗" : "✓";
    law.sign.setAttribute("aria-label", failure ? "broken:" : "satisfied:");
    law.why.replaceChildren(...rich(failure));
  }
  const broken = verdicts.filter((law) => law.why.textContent).length;
  const share = `${broken} of ${verdicts.length}`;
  heading.textContent = verdicts.length === 1 ? `Law: ${broken ? "broken" : "satisfied"}`
    : `Laws: ${broken ? `${share} broken` : "all satisfied"}`;
  tally.textContent = `${share} laws broken ↓`;
}

// how far the reader is from what the task asks for
function measure() {
  const { goal } = data;
  if (!goal) return;
  if (goal.mask) {
    const wanted = masks[goal.mask](words.length).flat(), open = state.input.mask.flat();
    const off = wanted.filter((x, k) => x !== open[k]).length;
    return aim(off ? `${off} ${off === 1 ? "cell" : "cells"} to go.` : "Every later word is hidden.", !off);
  }
  const row = of(found, goal.id)[goal.row], more = row[goal.more], than = goal.above ?? row[goal.than];
  const says = [goal.more, goal.than].filter((k) => k >= 0).map((k) => `${name(goal.id, goal.row, k)}: ${num(row[k])}`).join("; ");
  aim(`${says[0].toUpperCase()}${says.slice(1)}.`, goal.equal ? !differs(more, than) : more > than);
}

// what is broken, or else the step that the number in question belongs to
function tell(id) {
  const stage = stages[id ? stageOf(id) : state.at], bug = bugOf(state.bug), { guess, lent } = state;
  const hides = lent ? "The mask now hides later words. " : "";
  const [title, text] = state.mystery ? ["One step is wrong.", `${hides}Which step it is, only the laws tell: see which are broken, and by which numbers. ${guess}`]
    : bug ? [`Broken: ${bug.name}.`, guess ? `${guess} ${bug.wrong} Repair: ${bug.repair}` : `${hides}${bug.wrong} ${bug.seen}`]
      : [`${stages.indexOf(stage) + 1}. ${stage.name}:`, stage.says];
  told.hidden = !data.walk && !bug;
  if (told.said === title + text) return; // else it would be read aloud again
  told.said = title + text;
  told.replaceChildren(html("b", {}, ...rich(title)), " ", ...rich(text));
}

let lit = [];
function light() {
  lit.forEach((node) => node.classList.remove("src", "here"));
  lit = [];
  const [id, i, j] = state.shown ?? state.focus ?? [];
  // only beside the sentence on the number that they change
  less.hidden = more.hidden = !id || !edits(id) || state.focus?.join() !== [id, i, j].join();
  tell(id);
  if (!id || stageOf(id) > state.at)
    return say("Point at a number or tap it to see how it is computed. (Keyboard: Tab, then arrow keys.)");
  const mark = (node, kind) => { if (node) { node.classList.add(kind); lit.push(node); } };
  mark(cells[id][i][j], "here");
  const x = of(found, id)[i][j];
  if (state.mystery && !edits(id) && !matrices[id].toggle)
    return say(`${num(x)}: ${name(id, i, j)}. The calculation stays hidden while you look for the bug.`);
  const { bug, head, input: { scale } } = state;
  const { text, sources } = explain({ found, right, bug, head, scale, ids }, id, i, j);
  say(html("span", {}, ...rich(text)));
  for (const [from, a, b, r = head] of sources)
    if (r === head) mark((cells[from] ?? (from === "M" ? cells.T ?? cells.S : null))?.[a][b], "src");
}

// ------------------------------------------------------------------ what a reader does
function walk(to) {
  state.at = clamp(to, 0, last);
  const own = ids.filter((id) => stageOf(id) === state.at && !edits(id) && !matrices[id].toggle && !matrices[id].copy);
  point(own.length ? [own[0], follow, 0] : null);
  update();
  if (own.length) near(grids[own[0]]);
}

// brings a matrix into sight, where the sheet is higher than the window
function near(node) {
  const { top, bottom } = node.getBoundingClientRect();
  if (top > 60 && bottom < innerHeight - foot.offsetHeight) return;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const down = (top + bottom - innerHeight + foot.offsetHeight) / 2;
  scrollBy({ top: down, behavior: calm ? "auto" : "smooth" });
}

function damage(id) {
  const mystery = id === "mystery", old = state.bug;
  const others = bugs.filter((bug) => bug.id !== old);
  const bug = mystery ? others[Math.floor(Math.random() * others.length)] : bugOf(id);
  const open = state.input.mask.flat().every(Boolean);
  const lend = mystery || bug?.mask; // a mask that hides nothing would show nothing
  if (lend ? open : state.lent) state.input.mask = masks[lend ? "causal" : "open"](words.length);
  Object.assign(state, { bug: bug?.id ?? "", mystery, guess: "", at: last, lent: lend && (open || state.lent), shown: null, focus: null });
  guessing.value = "";
  update();
  if (bug && !mystery) seek(bug.at);
}

// explains the first number that the bug has changed, in the row of the word to follow if it can
function seek(from) {
  const order = Object.keys(matrices), k = order.indexOf(from), rows = [follow, ...words.keys()];
  for (const id of order.slice(k).filter((id) => ids.includes(id) && matrices[id].rows === "words"))
    for (const i of rows) {
      const j = of(found, id)[i].findIndex((x, j) => differs(x, of(right, id)[i][j]));
      if (j < 0) continue;
      point([id, i, j]);
      return near(grids[id]);
    }
}

function guess(id) {
  if (!id) return;
  if (id !== state.bug) state.guess = `Not “${bugOf(id).name}”: ${refute(id)}`;
  else Object.assign(state, { mystery: false, guess: "Right, that is the bug.", marked: true, focus: null });
  update();
  if (!state.mystery) seek(bugOf(id).at);
}

// what speaks against a guess: one law, or the numbers that break it
function refute(id) {
  const all = forward(state.input, id);
  const first = (test) => verdicts.find((law) => test(breach(law, id, all), law.why.textContent))?.name;
  const spared = first((would, does) => does && !would), more = first((would, does) => would && !does);
  return spared ? `with that bug the law “${spared}” would hold, but here it is broken.`
    : more ? `it would break the law “${more}”, which holds here.`
      : "it would break the same laws. Change a number or the mask, and look again.";
}

function restart() {
  Object.assign(state, beginning(), { typed: null, shown: null });
  update();
}

function point(place, focus) {
  state.shown = place;
  if (focus) {
    if (state.typed) finish();
    const before = state.focus;
    state.focus = place;
    (state.stops ??= {})[place[0]] = `${place[1]},${place[2]}`;
    if (before) paint(before[0]);
    paint(place[0]);
  }
  light();
}

// the row and the index of a number that can be changed
function slot([id, i, j]) {
  const { input, head } = state;
  if (id === "Kt") return [input.given.K[head][j], i];
  if (data.given.includes(id)) return [input.given[id[0]][head][i], j];
  return [input[id][i], j + (matrices[id].heads ? head * of(found, id)[0].length : 0)];
}
function put(x) {
  const [row, k] = slot(state.focus);
  row[k] = clamp(Math.round(x * 1000) / 1000, -MOST, MOST);
  update();
}
function step(by) {
  const [row, k] = slot(state.focus);
  state.shown = state.focus;
  put(row[k] + by);
}
function type(key) {
  const [row, k] = slot(state.focus);
  const typed = (state.typed ??= { text: "", old: row[k] });
  if (key === "Backspace") typed.text = typed.text.slice(0, -1);
  else if (key === "-") typed.text = typed.text.startsWith("-") ? typed.text.slice(1) : `-${typed.text}`;
  else typed.text = (typed.text + key.replace(",", ".")).slice(0, 5);
  const x = parseFloat(typed.text);
  if (Number.isFinite(x)) put(x);
  else update();
}
function finish(keep = true) {
  const { old } = state.typed;
  state.typed = null;
  if (keep) update();
  else put(old);
}

function flip([id, i, j]) {
  state.input[id][i][j] = !state.input[id][i][j];
  update();
}

const cellAt = (event) => {
  const { id, i, j } = event.target.closest?.("[data-id]")?.dataset ?? {};
  return id && stageOf(id) <= state.at ? [id, +i, +j] : null;
};
const go = ([id, i, j]) => cells[id][i][j].focus();
const on = (type, act) => frame.addEventListener(type, (event) => { const place = cellAt(event); if (place) act(place, event); });
on("pointerover", (place, event) => event.pointerType === "mouse" && point(place));
on("focusin", (place) => point(place, true));
on("click", (place) => { go(place); if (matrices[place[0]].toggle) flip(place); });
on("keydown", press);
frame.addEventListener("pointerleave", () => state.focus && point(state.focus));
frame.addEventListener("focusout", () => state.typed && finish());

function press(place, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const [id, i, j] = place, { key } = event, rows = cells[id].length, columns = cells[id][0].length;
  const to = { ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1], ArrowUp: [i - 1, j], ArrowDown: [i + 1, j], Home: [i, 0], End: [i, columns - 1] }[key];
  const by = { "+": 1, "=": 1, "-": -1, "−": -1 }[key], enter = key === "Enter" || key === " ";
  const writes = /^[\d.,]$/.test(key) || (state.typed && (key === "-" || key === "Backspace"));
  if (to) go([id, clamp(to[0], 0, rows - 1), clamp(to[1], 0, columns - 1)]);
  else if (matrices[id].toggle && enter) flip(place);
  else if (!edits(id)) {
    if ((by || writes) && !matrices[id].toggle) say("This number is computed, so you cannot edit it. You can edit numbers with a dotted line below.");
    return;
  }
  else if (writes) type(key);
  else if (by) step(by);
  else if (state.typed && (enter || key === "Escape")) finish(key !== "Escape");
  else return;
  event.preventDefault();
}

mount(html("span", {}, ...rich(data.task)), tools, frame, court);
const foot = html("div", { class: "foot" }, html("div", {}, steps, told), acts, html("div", {}, readout, less, more));
frame.after(foot);
root.dataset.lmSuppressShortcuts = "true"; // JupyterLab has shortcuts of one key
less.hidden = more.hidden = true;
found = right = forward(state.input);
measure();
tell();
choose(matchMedia("(min-width: 721px)").matches); // at once, so that nothing moves later
new ResizeObserver(() => choose(root.clientWidth >= Math.max(600, 0.95 * data.places.wide.width))).observe(root);
const watch = new IntersectionObserver((seen) => {
  if (!seen.some((entry) => entry.isIntersecting)) return;
  watch.disconnect();
  build();
  update();
}, { rootMargin: "0px 0px -10%" }); // until then the still has the same numbers
watch.observe(root);
addEventListener("beforeprint", () => {
  if (cells) walk(last);
  else court.hidden = true; // never seen: the still is printed
});
