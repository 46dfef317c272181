// The cells of a page can be run and edited. Python is loaded with the first click.
(() => {
  const script = document.currentScript, here = new URL(".", script.src);
  const { files, size, version } = script.dataset;
  const SECONDS = 10; // of a cell, and then it is stopped
  const MEGABYTES = `${Math.round(size / 1e6)} MB`;
  const PREFIX = "head-by-head/"; // of what is kept in this browser, one text per page
  const page = location.pathname.split("/").pop().replace(/\.html$/, "");
  const notebook = document.querySelector(".runs a[download]")?.href;
  const cells = new Map(); // by the number of the cell in its notebook
  let python, sources, busy = false;

  const make = (name, more, ...inside) => {
    const node = Object.assign(document.createElement(name), more);
    node.append(...inside);
    return node;
  };
  const button = (text, onclick) => make("button", { type: "button", textContent: text, onclick });

  // What happens now, for eyes and for screen readers; it moves to the cell that runs.
  const said = make("span", { role: "status" });
  const bar = make("progress", { max: size, value: 0, hidden: true, ariaLabel: "loaded" });
  const halt = button("Stop", () => python.stop());
  const status = make("div", { className: "run-status", hidden: true }, bar, said, halt);
  halt.hidden = true;

  function say(text, working) {
    said.textContent = text;
    status.hidden = !text;
    halt.hidden = !working;
    if (!working) bar.hidden = true;
  }

  const composed = (pair, hidden) => `lambda Q, K, V, mask=None: designs.weights(` +
    `designs.scores(${pair}), designs.both(mask, ${hidden})) @ V`;
  const REFERENCES = [ // of the box: correct functions of mha
    ["attention", "scaled_dot_product_attention"],
    ["attention that is causal", composed("Q, K", "designs.causal(Q, K)")],
    ["attention in a window of 3 tokens", composed("Q, K", "designs.window(Q, K, 3)")],
    ["attention with rotary positions", composed("designs.rotary(Q), designs.rotary(K)", "None")],
    ["linear attention", "designs.linear"],
    ["my function reference(Q, K, V, mask=None)", "reference"],
  ];
  const MINE = `import numpy as np


def attend(Q, K, V, mask=None):  # put your own here; this one breaks laws
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    powers = np.exp(scores)
    return powers / powers.sum(-1, keepdims=True) @ V`;

  // Python

  async function load() {
    const module = await import(new URL(`python.js?v=${version}`, here));
    python ??= new module.Python(files.split(" ").map((name) => new URL(name, here).href),
      new URL(`worker.js?v=${version}`, here));
    const asked = performance.now();
    if (!python.ready) say(`Loading Python with NumPy, ${MEGABYTES}, once …`, true);
    bar.hidden = Boolean(python.ready);
    await python.start(({ loaded, unpacking }) => {
      bar.value = loaded;
      const come = Math.round(loaded / 1e6);
      say(unpacking ? "Starting Python …" : `Loading Python with NumPy, once: ${come} of ${MEGABYTES}`, true);
      bar.hidden = false;
    });
    return performance.now() - asked;
  }

  // The code of all cells of the notebook, with what the reader wrote.
  async function written(cell) {
    if (cell.box) return [[cell.code()], 0];
    if (!sources) {
      const found = await (await fetch(notebook)).json();
      sources = found.cells.filter((c) => c.cell_type === "code").map((c) => [].concat(c.source).join(""));
    }
    return [sources.map((text, k) => cells.get(k)?.code() ?? text), cell.k];
  }

  async function run(cell) {
    if (busy) return;
    if (location.protocol === "file:") {
      cell.tools.after(status);
      return say("A browser runs no Python for a page that lies on a disk. Open the page on the web, or its notebook.");
    }
    busy = true;
    cell.tools.after(status);
    cell.tools.setAttribute("aria-busy", "true");
    try {
      await load();
      say("Running …", true);
      const [texts, k] = await written(cell);
      const start = performance.now();
      const result = await python.run(texts, k, SECONDS);
      show(cell, result);
      const seconds = ((performance.now() - start) / 1000).toFixed(1);
      say(result.error ? "It ended in an error, shown below." : `Done in ${seconds} s.`);
    } catch (error) {
      const late = error.message.startsWith("stopped after");
      say(late ? `${error.message[0].toUpperCase()}${error.message.slice(1)}: does a loop not end? ` +
        "What takes longer runs in the notebook." : `Python ${error.message}.`);
    }
    cell.tools.removeAttribute("aria-busy");
    busy = false;
  }

  // Outputs

  // An exercise answers in words that the page shows as it shows the stored ones.
  const VERDICT = /^(passed|not yet|not attempted yet): (.+(?:\n {3}\b.+)*)(?:\n([^]+))?$/;
  const SIGNS = { passed: "✓", "not yet": "✗", "not attempted yet": "○" };

  const printed = (text) => make("div", { className: "output stream" },
    make("div", { className: "highlight" }, make("pre", { textContent: text.replace(/\n$/, "") })));

  function shown({ text, html }) {
    if (html) return make("div", { className: "output text_html", innerHTML: html });
    const found = VERDICT.exec(text.trimEnd());
    if (!found) return printed(text);
    const mark = make("span", { className: `mark${found[1] === "not yet" ? " wrong" : ""}`, textContent: SIGNS[found[1]] });
    const line = make("p", {}, mark, " ", make("b", { textContent: found[1] }), `: ${found[2]}`);
    const more = found[3] ? [make("pre", { textContent: found[3] })] : [];
    return make("div", { className: "output text_html" }, make("div", { className: "report" }, line, ...more));
  }

  function show(cell, { outputs, error, needs }) {
    const parts = outputs.filter((output) => !output.stored).map(shown);
    if (needs) error = `This needs ${needs}, which a page does not have: run it in the notebook.`;
    if (error) parts.push(make("pre", { className: "run-error", textContent: error }));
    if (!parts.length && !outputs.length) parts.push(make("p", { className: "run-quiet", textContent: "It prints nothing." }));
    cell.result.replaceChildren(...parts);
    cell.result.hidden = false;
    const stored = outputs.some((output) => output.stored);
    for (const node of cell.stored)
      for (const part of node.children) part.hidden = !(stored && part.querySelector("img, svg"));
  }

  function forget(cell) {
    cell.result.hidden = true;
    cell.result.replaceChildren();
    for (const node of cell.stored) for (const part of node.children) part.hidden = false;
  }

  // What the reader writes

  const kept = (name = page) => JSON.parse(localStorage.getItem(PREFIX + name) ?? "{}");

  function keep(cell) {
    const texts = kept();
    if (cell.editor.value === cell.original) delete texts[cell.original];
    else texts[cell.original] = cell.editor.value;
    if (Object.keys(texts).length) localStorage.setItem(PREFIX + page, JSON.stringify(texts));
    else localStorage.removeItem(PREFIX + page);
    cell.mine.hidden = !(cell.original in texts);
    said.textContent = "";
    status.hidden = true;
  }

  function save(name, text) {
    const link = make("a", { download: name, href: URL.createObjectURL(new Blob([text])) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  async function saveNotebook() {
    const found = await (await fetch(notebook)).json(), texts = kept();
    for (const cell of found.cells) {
      const text = texts[[].concat(cell.source).join("")];
      if (text !== undefined) Object.assign(cell, { source: text, outputs: [], execution_count: null });
    }
    save(`${page}.ipynb`, JSON.stringify(found, null, 1));
  }

  function saveFile() {
    const pages = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX)).sort();
    const parts = pages.map((key) => key.slice(PREFIX.length)).flatMap((name) =>
      [`\n# ${name}`, ...Object.values(kept(name)).map((text) => `\n${text.trim()}\n`)]);
    save("my_mha.py", `"""What I wrote in Head by Head."""\n\nimport math\n\nimport numpy as np\n\nimport mha\n${parts.join("\n")}`);
  }

  function deleteAll() {
    if (!confirm("Delete what you wrote on all pages of this book?")) return;
    for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key);
    for (const cell of cells.values()) if (cell.editor) reset(cell);
  }

  function reset(cell) {
    cell.editor.value = cell.original;
    cell.editor.dispatchEvent(new Event("input"));
    forget(cell);
  }

  // A text area that indents: Tab and Shift+Tab; Escape, so that Tab leaves it.
  function edit(cell, text = cell.original) {
    const lines = make("div", { className: "run-lines", ariaHidden: "true" });
    const area = make("textarea", { value: text, spellcheck: false, wrap: "off", autocapitalize: "off" });
    area.setAttribute("autocomplete", "off");
    area.setAttribute("aria-label", "Code. Tab indents; press Escape first to leave with Tab. Control and Enter run it.");
    const fit = () => {
      const n = area.value.split("\n").length;
      area.rows = n;
      lines.textContent = Array.from({ length: n }, (_, k) => k + 1).join("\n");
    };
    const type = (text) => document.execCommand("insertText", false, text); // can be undone
    let leaves = false;
    area.oninput = () => { fit(); keep(cell); };
    area.onkeydown = (event) => {
      const start = area.value.lastIndexOf("\n", area.selectionStart - 1) + 1;
      const line = area.value.slice(start, area.selectionStart);
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) (cell.next ?? cell).go();
      else if (event.key === "Escape") { leaves = true; return; }
      else if (event.key === "Enter" && !event.isComposing)
        type(`\n${line.match(/^ */)[0]}${/:\s*(#.*)?$/.test(line) ? "    " : ""}`);
      else if (event.key === "Tab" && !leaves && !event.shiftKey) type(" ".repeat(4 - (line.length % 4)));
      else if (event.key === "Tab" && !leaves && /^ +$/.test(line)) {
        area.setSelectionRange(area.selectionStart - Math.min(4, line.length), area.selectionStart);
        document.execCommand("delete");
      } else { leaves = leaves && event.key === "Shift"; return; }
      event.preventDefault();
    };
    cell.editor = area;
    cell.mine = make("p", { className: "run-mine", hidden: true },
      "Kept in this browser only, until you delete it. Take it along: ",
      ...(notebook ? [button("notebook", saveNotebook), " "] : []),
      button("my_mha.py", saveFile), " ", button("Delete all", deleteAll));
    cell.code = () => cell.before + area.value + cell.after;
    const box = make("div", { className: "run-editor" }, lines, area);
    cell.place.replaceWith(box);
    cell.result.after(cell.mine);
    fit();
    keep(cell);
    return area;
  }

  function dress(cell, verb) {
    cell.go = () => run(cell);
    cell.tools = make("div", { className: "run-tools" });
    cell.result = make("div", { className: "cell_output run-output", hidden: true, role: "group", ariaLabel: "Output" });
    const start = button(verb, cell.go);
    start.title = `Runs here, in your browser. Python is loaded once, ${MEGABYTES}.`;
    cell.tools.append(start);
    if (verb === "Check") return;
    const change = button("Edit", () => {
      edit(cell).focus();
      change.replaceWith(back);
    });
    const back = button("Reset", () => reset(cell));
    cell.tools.append(change);
    cell.begin = (text) => { edit(cell, text); change.replaceWith(back); };
  }

  // The cells of a chapter

  const texts = kept();
  let exercise;
  for (const node of document.querySelectorAll("[class*=' tag_run-']")) {
    const k = Number(/ tag_run-(\d+)/.exec(node.className)[1]);
    const place = node.querySelector(".cell_input div.highlight"), outputs = node.querySelector(":scope > .cell_output");
    if (!place) continue;
    const lacks = / tag_needs-(\S+)/.exec(node.className)?.[1].replaceAll("-", " ");
    const input = node.querySelector(".cell_input");
    if (lacks) {
      const link = make("a", { href: notebook, textContent: "notebook" });
      link.download = "";
      input.append(make("p", { className: "run-needs" }, `Needs ${lacks}: it runs in the `, link, "."));
      continue;
    }
    const original = place.querySelector("pre").textContent.trimEnd();
    const cell = { k, place, original, before: "", after: "", stored: outputs ? [outputs] : [], code: () => original };
    cells.set(k, cell);
    dress(cell, node.classList.contains("tag_exercise-check") ? "Check" : "Run");
    input.after(cell.tools, cell.result);
    if (original in texts) cell.begin(texts[original]);
    if (exercise) exercise.next = cell;
    exercise = node.classList.contains("tag_exercise") ? cell : null;
  }

  // The box for a function of the reader's, which is compared with a reference
  const box = document.getElementById("your-attention");
  if (box) {
    const place = make("div"), chosen = make("select");
    for (const [text, value] of REFERENCES) chosen.append(make("option", { textContent: text, value }));
    const cell = { box, place, original: MINE, before: "", stored: [] };
    Object.defineProperty(cell, "after", { get: () =>
      `\n\nfrom mha import designs, laws, scaled_dot_product_attention\n\nlaws.check(attend, reference=${chosen.value})` });
    dress(cell, "Check");
    cell.tools.prepend(make("label", {}, "Compared with ", chosen));
    box.append(make("p", { textContent: "Or paste a function of NumPy here. It runs in your browser, and nothing of it leaves your computer:" }),
      place, cell.tools, cell.result);
    edit(cell, texts[MINE] ?? MINE);
    cell.tools.append(button("Reset", () => reset(cell)));
    box.hidden = false;
  }
})();
