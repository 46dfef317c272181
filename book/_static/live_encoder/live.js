// The live encoder: a trained model runs on any word, right and broken, in the page of the
// reader. model.js computes; this file shows what it finds and lets a reader change the word.
// `part` is "whole", or "part" for a small one that only marks the stress.
function liveEncoder(root, folder, { part, words, tested, models = {}, endings }) {
  const { read, forward, best, range, LONGEST } = stressModel;
  const SHORTEST = 3, whole = part === "whole";
  const WAYS = [["alone", "alone, as in use"], ["fixed", `padded to ${LONGEST} letters, as in its test`]];
  const state = {
    word: words[0][0], name: "right", way: "alone", layer: 0, head: 0,
    at: 0, // the letter that is chosen: its row of weights is shown, and it can be replaced
    over: null, // the letter under the pointer, whose row is shown instead
  };
  const loaded = { right: read(stressModels.right) };
  let found, shape = ""; // of the word as it is shown; the number of columns that are built

  function build(make, tag, attributes, children) {
    const node = make(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== false && value != null) node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }
  const html = (tag, attributes, ...children) => build((t) => document.createElement(t), tag, attributes, children);
  const svg = (tag, attributes, ...children) =>
    build((t) => document.createElementNS("http://www.w3.org/2000/svg", t), tag, attributes, children);
  const button = (text, onclick, more) => html("button", { type: "button", onclick, ...more }, text);
  const percent = (p) => `${Math.round(100 * p)}\u00a0%`;

  // many nodes, one stop of the Tab key; arrow keys go on from there
  function arrows(nodes, columns) {
    const stop = (i) => nodes.forEach((node, j) => { node.tabIndex = i === j ? 0 : -1; });
    nodes.forEach((node, i) => {
      node.addEventListener("focus", () => stop(i));
      node.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
        if (!step) return;
        event.preventDefault();
        nodes[(i + step + nodes.length) % nodes.length].focus();
      });
    });
    stop(0);
    return stop;
  }

  const run = (word, way = state.way) => forward(loaded[state.name], word,
    { bug: state.name, length: way === "fixed" ? LONGEST : word.length });
  const stress = (word, way) => best(run(word, way).p);
  const name = (j) => (j < state.word.length ? `“${state.word[j]}” (letter ${j + 1})` : "padding");

  // --------------------------------------------------------------- the word and its letters

  const typed = html("input", {
    type: "text", value: state.word, maxlength: LONGEST, size: 14, spellcheck: "false",
    autocapitalize: "none", autocomplete: "off", oninput: () => type(typed.value),
  });
  const refused = html("span", { class: "refused", role: "status" });
  const verdict = html("p", { class: "verdict" });
  const examples = html("div", { class: "row", role: "group", "aria-label": "Example words" },
    ...words.map(([word]) => button(word, () => put(word))));
  const stage = html("div", { class: "stage", onmouseleave: () => point(null) });
  const readout = html("p", { class: "readout", "aria-live": "polite" });
  let bars, letters, stop, keys, effects, lines; // one node for each letter, and all weights

  function type(text) {
    const word = text.toLowerCase().trim();
    const fits = new RegExp(`^[a-z]{${SHORTEST},${LONGEST}}$`).test(word);
    refused.textContent = fits ? "" : `Only the letters a to z, from ${SHORTEST} to ${LONGEST} of them.`;
    typed.setAttribute("aria-invalid", !fits);
    if (fits) put(word);
  }
  function put(word, at = stress(word)) {
    Object.assign(state, { word, at: Math.min(at, word.length - 1), over: null });
    if (document.activeElement !== typed) typed.value = word;
    refused.textContent = "";
    typed.removeAttribute("aria-invalid");
    update();
  }
  const point = (i) => { state.over = i; draw(); };
  function choose(i) {
    const same = state.at === i;
    Object.assign(state, { at: i, over: null });
    draw();
    if (!same && whole) offer();
  }
  function press(event, i) {
    const { word } = state, key = event.key.toLowerCase();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^[a-z]$/.test(key)) put(word.slice(0, i) + key + word.slice(i + 1), i);
    else if (["backspace", "delete"].includes(key) && word.length > SHORTEST) put(word.slice(0, i) + word.slice(i + 1), i);
    else return;
    event.preventDefault();
    event.stopImmediatePropagation(); // this button may be gone by now
    letters[Math.min(i, state.word.length - 1)].focus();
  }

  // columns for letters, and for the padding behind them
  function build_columns() {
    const n = state.word.length, all = found.A[0][0].length;
    if (shape === `${n} ${all}`) return;
    shape = `${n} ${all}`;
    const held = letters?.includes(document.activeElement);
    bars = range(n).map(() => html("div", { class: "room" }, html("i"), html("small")));
    letters = range(n).map((i) => button("", () => choose(i), {
      class: "letter", onmouseenter: () => point(i), onkeydown: (event) => press(event, i), onfocus: () => choose(i),
    }));
    keys = range(all).map(() => html("div", { class: "key" }, html("b"), html("small")));
    effects = range(n).map(() => html("div", { class: "effect" }, html("i"), html("small")));
    lines = svg("svg", { viewBox: `0 0 ${all} 1`, preserveAspectRatio: "none", "aria-hidden": "true" });
    const fill = (nodes) => [...nodes, ...range(all - nodes.length).map(() => html("span"))];
    stage.style.setProperty("--n", all);
    const look = ["What the letter in the ", html("b", { class: "is-query" }, "blue"), " frame attends to in this head, weights in %. Grey: the same for the other letters."];
    const test = ["Striped: each letter is replaced by every other one of its kind (vowel, consonant). How many of these changes move the stress, in %?"];
    const said = (text) => html("p", { class: "legend" }, ...text);
    stage.replaceChildren(...(whole ? [said(["How probable is the stress on each letter?"])] : []), ...fill(bars), ...fill(letters),
      ...(whole ? [lines, ...keys, said(look), ...fill(effects), said(test)] : []));
    stop = arrows(letters, n);
    if (held) letters[Math.min(state.at, n - 1)].focus();
  }

  // -------------------------------------------------------------- its two answers, by padding

  const group = Math.random().toString(36).slice(2);
  const radio = (kind, more) => html("input", { type: "radio", name: `${kind}-${group}`, ...more });
  const rows = WAYS.map(([way, text]) => ({ way, share: html("td"), answer: html("td"),
    label: html("label", {}, radio("way", { checked: way === state.way, onchange: () => { state.way = way; update(); } }), ` ${text}`) }));
  const answers = html("table", { class: "answers" },
    html("tr", {}, ...["How the word comes", "right on test words", "this word"].map((text) => html("th", { scope: "col" }, text))),
    ...rows.map(({ label, share, answer }) => html("tr", {}, html("th", { scope: "row" }, label), share, answer)));
  const choice = html("select", { onchange: () => load(choice.value) },
    ...Object.entries(models).map(([key, { wrong, called }]) => html("option", { value: key }, wrong ? called : "nothing, attention is correct")));
  const told = html("p", { class: "told", role: "status" });

  function load(key) {
    const show = () => {
      loaded[key] ??= read(stressModels[key]);
      state.name = key;
      update();
    };
    const failed = () => { told.textContent = "This model could not be loaded."; };
    if (loaded[key]) show();
    else document.head.append(html("script", { src: `${folder}${key}.js`, onload: show, onerror: failed }));
  }

  function tell() {
    const facts = models[state.name], picks = WAYS.map(([way]) => stress(state.word, way));
    rows.forEach(({ way, share, answer }, k) => {
      share.textContent = facts ? `${(100 * facts[way]).toFixed(1)}\u00a0%` : "unknown";
      answer.replaceChildren(...marked(state.word, picks[k]));
    });
    answers.classList.toggle("differ", picks[0] !== picks[1]);
    told.textContent = !facts ? "These are your weights. The page computes with correct attention, so if yours is wrong, your program gives other answers."
      : !facts.law ? "Correct attention does not see padding, so both answers are always the same."
      : `${facts.wrong} This model was trained with the mistake, on padded words. Its two answers differ for `
        + `${percent(1 - facts.same)} of the ${tested.toLocaleString("en")} test words. A law that it breaks before any training: ${facts.law}.`;
  }
  const marked = (word, k) => [word.slice(0, k), html("b", {}, word[k].toUpperCase()), word.slice(k + 1)];

  // ------------------------------------------------------------------------------ the heads

  const heads = html("fieldset", { class: "maps" });
  let maps = [];
  function build_maps() {
    const { layers, n_heads } = loaded[state.name];
    if (maps.length === layers.length && maps[0].length === n_heads) return;
    Object.assign(state, { layer: layers.length - 1, head: 0 });
    maps = layers.map(() => range(n_heads).map(() => svg("svg", { preserveAspectRatio: "none", "aria-hidden": "true" })));
    heads.style.setProperty("--heads", n_heads);
    heads.replaceChildren(html("legend", {}, "Heads (layer.head)"), ...maps.flatMap((row, l) => row.map((map, r) =>
      html("label", {}, radio("head", { checked: l === state.layer && r === 0, "aria-label": `layer ${l + 1}, head ${r + 1}`,
        onchange: () => { Object.assign(state, { layer: l, head: r }); draw(); } }), html("span", {}, map, `${l + 1}.${r + 1}`)))));
  }
  function draw_maps() {
    maps.forEach((row, l) => row.forEach((map, r) => {
      const A = found.A[l][r], n = state.word.length;
      map.setAttribute("viewBox", `0 0 ${A.length} ${n}`);
      map.replaceChildren(...A.slice(0, n).flatMap((weights, i) => weights.map((a, j) => a > 0.02 &&
        svg("rect", { x: j, y: i, width: 1, height: 1, "fill-opacity": Math.min(1, a).toFixed(2) })).filter(Boolean)),
        svg("rect", { class: "asks", y: state.over ?? state.at, width: A.length, height: 1 }));
    }));
  }

  // --------------------------------------------------------------------- change it and see

  const replace = html("div", { class: "row keys26", role: "group" });
  const append = html("div", { class: "row", role: "group", "aria-label": "Add at the end" });
  const replacing = html("p", { class: "what" });

  function offer() {
    const { word, at } = state, now = best(found.p), head = word.slice(0, at), tail = word.slice(at + 1);
    const option = (text, other, label) => {
      const fits = other.length >= SHORTEST && other.length <= LONGEST, k = fits ? stress(other) : now;
      return button(text, () => fits && put(other, Math.min(at, other.length - 1)), {
        class: k !== now ? "moves" : "", "aria-disabled": !fits, "aria-pressed": other === word, title: fits ? "" : `a word has ${SHORTEST} to ${LONGEST} letters`,
        "aria-label": `${label}: ${fits ? `${other}, stress on letter ${k + 1}, ${other[k]}` : "does not fit"}`,
      });
    };
    const spot = [...replace.children].indexOf(document.activeElement);
    replacing.replaceChildren("Replace ", html("b", {}, `“${word[at]}”`), ` (letter ${at + 1}) by`);
    replace.setAttribute("aria-label", `Replace letter ${at + 1}, ${word[at]}`);
    replace.replaceChildren(...[..."abcdefghijklmnopqrstuvwxyz"].map((c) => option(c, head + c + tail, c)),
      option("delete", head + tail, "delete"));
    append.replaceChildren(...endings.map((end) => option(`+${end}`, word + end, `add ${end}`)));
    arrows([...replace.children], 9);
    arrows([...append.children], 3);
    if (spot >= 0) replace.children[spot].focus();
  }

  // How much a letter matters: the share of its replacements by letters of its kind, vowel or
  // consonant, with which the stress moves. One letter at a time, so that keys stay quick.
  const KINDS = ["aeiou", "bcdfghklmnprstvwz"];
  let turn = 0;
  function measure(i = 0, mine = ++turn) {
    if (mine !== turn) return; // the word has changed meanwhile
    const { word } = state, now = best(found.p), kind = KINDS["aeiouy".includes(word[i]) ? 0 : 1];
    const others = [...kind].filter((c) => c !== word[i]);
    const moved = others.filter((c) => stress(word.slice(0, i) + c + word.slice(i + 1)) !== now).length / others.length;
    effects[i].children[0].style.height = `${100 * moved}%`;
    effects[i].children[1].textContent = Math.round(100 * moved);
    if (i + 1 < word.length) setTimeout(measure, 0, i + 1, mine);
    else root.dataset.measured = word;
  }

  // --------------------------------------------------------------------------- your weights

  const file = html("input", { type: "file", accept: ".json,application/json", onchange: open });
  const opened = html("p", { class: "refused", role: "status" });
  async function open() {
    opened.textContent = "";
    try {
      loaded.yours = read(JSON.parse(await file.files[0].text()));
    } catch (error) {
      const reason = error instanceof SyntaxError ? "It is not JSON." : error.message;
      opened.textContent = `This file cannot be opened. ${reason}`;
      return;
    }
    if (!choice.querySelector('[value="yours"]')) choice.append(html("option", { value: "yours" }, "your own weights"));
    choice.value = "yours";
    load("yours");
  }

  // -------------------------------------------------------------------------------- show it

  let waiting;
  function update() {
    found = run(state.word);
    if (whole) build_maps();
    build_columns();
    draw();
    if (!whole) return;
    draw_maps();
    tell();
    offer();
    turn++; // what is being measured belongs to another word
    for (const { children: [, number] } of effects) number.textContent = "…";
    clearTimeout(waiting);
    waiting = setTimeout(measure, 60);
  }

  function draw() {
    const { word, layer, head } = state, i = state.over ?? state.at, A = found.A[layer][head], row = A[i];
    const top = best(found.p), dictionary = words.find(([known]) => known === word)?.[1];
    [...word].forEach((letter, k) => {
      const [bar, number] = bars[k].children, p = found.p[k], most = best(A[k]);
      bar.style.height = number.style.bottom = `${Math.max(2, 78 * p)}%`;
      number.textContent = p >= 0.045 || k === top ? percent(p) : "";
      bars[k].classList.toggle("top", k === top);
      letters[k].textContent = k === top ? letter.toUpperCase() : letter;
      letters[k].classList.toggle("top", k === top);
      letters[k].classList.toggle("now", k === i);
      letters[k].setAttribute("aria-pressed", k === state.at);
      letters[k].setAttribute("aria-label", `letter ${k + 1}, ${letter}: stressed with probability ${percent(p)}`
        + (whole ? `; attends most to ${name(most)}, ${percent(A[k][most])}` : ""));
    });
    stop(state.at);
    verdict.replaceChildren(html("span", {}, ...marked(word, top)), html("small", {}, dictionary ? `Dictionary: ${dictionary}` : ""));
    readout.textContent = `Stress on ${name(top)}: ${percent(found.p[top])}.`;
    Object.assign(root.dataset, { word, top, model: state.name, way: state.way });
    if (!whole) return;
    for (const map of maps.flat()) map.querySelector(".asks")?.setAttribute("y", i);
    keys.forEach((node, j) => {
      node.children[0].textContent = word[j] ?? "·";
      node.children[1].textContent = row[j] >= 0.005 ? Math.round(100 * row[j]) : "";
      node.style.setProperty("--a", `${Math.min(100, Math.round(100 * row[j]))}%`);
    });
    const line = (q, j, a, on) => svg("line", { x1: q + 0.5, x2: j + 0.5, y1: 0, y2: 1, class: on ? "on" : "",
      "stroke-width": (on ? 1 + 7 * Math.min(1, a) : 3 * a).toFixed(2), "stroke-opacity": Math.min(1, on ? 0.25 + a : 0.5 * a).toFixed(2) });
    lines.replaceChildren(...range(word.length).filter((q) => q !== i).flatMap((q) => A[q].map((a, j) => a > 0.1 && line(q, j, a))).filter(Boolean),
      ...row.map((a, j) => a > 0.015 && line(i, j, a, true)).filter(Boolean));
    const order = range(row.length).sort((a, b) => row[b] - row[a]).slice(0, 3), sum = row.reduce((a, b) => a + b);
    readout.textContent += ` In layer ${layer + 1}, head ${head + 1}, ${name(i)} attends most to `
      + order.map((j) => `${name(j)}, ${percent(row[j])}`).join("; ") + (Math.abs(sum - 1) > 0.01 ? `. Its weights sum to ${sum.toFixed(2)}, not 1.` : ".");
  }

  // ------------------------------------------------------------------------------- put it up

  const word = html("div", { class: "row first" }, html("label", {}, "Word ", typed), refused);
  const live = html("div", { class: "live" });
  root.querySelector(".still").hidden = true;
  root.append(live);
  found = run(state.word);
  state.at = best(found.p);
  if (whole) {
    word.append(html("label", {}, html("b", {}, "Break it: "), choice));
    const axes = html("p", { class: "legend" }, "A row is a letter that attends, and a column is what it attends to. The outlined row is that of the letter in the frame.");
    live.append(word, examples, answers, told, html("div", { class: "both" }, html("div", {}, verdict, stage, readout), html("div", {}, heads, axes)),
      replacing, replace, html("p", { class: "what" }, "Add at the end"), append, html("p", { class: "legend" }, "A double border: this change moves the stress."),
      html("div", { class: "row" }, html("label", {}, html("b", {}, "Your own weights: "), file), opened));
  } else {
    const more = html("a", { href: `${folder}../../book/live_encoder.html` }, "See where each head looks, and break it");
    live.append(word, examples, verdict, stage, readout, more);
  }
  update();
}
