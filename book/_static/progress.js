// Which exercises are solved. The ticks stay in this browser and are never sent.
(() => {
  const KEY = "head-by-head:solved"; // ["5.1", "5.3"]
  const totals = Object.entries(JSON.parse(document.currentScript.dataset.exercises));
  const boxes = new Map();
  try { localStorage.getItem(KEY); } catch { return; } // it keeps nothing

  function make(tag, properties, ...inside) {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...inside);
    return node;
  }
  function read() {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY));
      return new Set(Array.isArray(kept) ? kept : []);
    } catch { return new Set(); }
  }
  function write(solved) {
    localStorage.setItem(KEY, JSON.stringify([...solved].sort()));
    show();
  }
  function tick(id, on) {
    const solved = read();
    solved[on ? "add" : "delete"](id);
    write(solved);
  }
  function erase() {
    if (confirm("Erase the ticks of all chapters?")) write([]);
  }

  const here = document.getElementById("solved-here");
  const total = make("p", { className: "takes", hidden: true });
  const note = make("p", { className: "solved-note" },
    `${here ? "Tick what you have solved. " : ""}The ticks stay in this browser and are `,
    "sent to nobody. ",
    make("button", { type: "button", onclick: erase }, "Erase all ticks"));
  const marks = new Map();
  for (const link of document.querySelectorAll(".bd-docs-nav a")) {
    const found = totals.find(([name]) => link.href.includes(`/book/${name}.html`));
    if (found) marks.set(found[0], link.appendChild(make("small", { hidden: true })));
  }
  for (const title of document.querySelectorAll("article h3")) {
    const id = /^Exercise (\d+\.\d+):/.exec(title.textContent)?.[1];
    if (!id) continue;
    const box = make("input", { type: "checkbox", onchange: () => tick(id, box.checked) });
    const name = make("span", { className: "visually-hidden" }, ` exercise ${id}`);
    title.after(make("label", { className: "solved" }, box, " solved", name));
    if (!boxes.size) title.parentNode.before(note);
    boxes.set(id, box);
  }
  if (!here) {
    document.querySelector("section > h1")?.after(total);
    total.after(note);
  }

  function show() {
    const solved = read();
    let sum = 0, all = 0;
    for (const [name, of] of totals) {
      const ids = Array.from({ length: of }, (_, i) => `${parseInt(name)}.${i + 1}`);
      const done = ids.filter((id) => solved.has(id)).length;
      sum += done;
      all += of;
      const mark = marks.get(name);
      if (mark) [mark.hidden, mark.textContent] = [!done, ` ${done} of ${of} solved`];
    }
    for (const [id, box] of boxes) box.checked = solved.has(id);
    const done = [...boxes.keys()].filter((id) => solved.has(id)).length;
    if (here) here.textContent = `${done} of ${boxes.size} exercises solved`;
    else total.hidden = note.hidden = !sum;
    total.textContent = `${sum} of ${all} exercises solved`;
  }
  show();
  addEventListener("storage", show);
  addEventListener("pageshow", show);
})();
