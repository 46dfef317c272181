// The front page: a sentence to choose words in, and two layers to find out about.
(() => {
  const find = (selector, root = document) => root.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const data = JSON.parse(find("#front-data").textContent);

  // The sentence: one stop of the Tab key; arrow keys go from word to word.
  const arcs = find(".arcs"), words = all(".arcs .word"), looks = all(".arcs .look");
  const KEYS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  const choose = (chosen, quiet) => {
    for (const word of words) {
      const on = word === chosen;
      word.classList.toggle("on", on);
      word.setAttribute("aria-checked", on);
      word.setAttribute("tabindex", on ? 0 : -1);
    }
    const name = chosen.dataset.word;
    for (const look of looks) look.toggleAttribute("hidden", look.dataset.of !== name);
    if (!quiet) find("#saying").textContent = data.says[name];
  };
  arcs.setAttribute("role", "radiogroup");
  arcs.setAttribute("aria-label", "Attention weights of a word. Choose one of four words.");
  words.forEach((word, i) => {
    word.setAttribute("role", "radio");
    word.setAttribute("aria-label", word.dataset.word);
    word.addEventListener("click", () => { choose(word); word.focus(); });
    word.addEventListener("keydown", (event) => {
      const step = KEYS[event.key];
      if (!step && event.key !== " " && event.key !== "Enter") return;
      event.preventDefault();
      const next = words[(i + (step ?? 0) + words.length) % words.length];
      choose(next);
      next.focus();
    });
  });
  choose(words.find((word) => word.dataset.word === "it"), true);

  // The two layers: guess, repair, ask.
  const steps = ["guess", "repair", "law"].map((name) => find(`#step-${name}`));
  const [guess, repair] = steps, done = new Set();
  const A = find('[data-layer="A"]'), B = find('[data-layer="B"]');
  const [before, after] = data.accuracy, score = find(".score", B);
  const told = find(".told", B), broken = told.textContent;
  B.style.setProperty("--accuracy", after);

  let counting = 0; // the number of the latest count
  function count(from, to) {
    const mine = ++counting, start = performance.now();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const tick = (now) => {
      if (mine !== counting) return;
      const t = still ? 1 : Math.min(1, (now - start) / 1000);
      score.textContent = (to + (from - to) * (1 - t) ** 3).toFixed(3);
      if (t < 1) requestAnimationFrame(tick);
    };
    tick(start);
  }
  function show() {
    const known = done.has(guess), repaired = repair.open;
    find(".layers").classList.toggle("known", known);
    A.classList.toggle("right", known);
    B.classList.toggle("broken", known);
    for (const maps of all(".maps")) maps.classList.toggle("piled", guess.open);
    if (B.classList.toggle("repaired", repaired) !== (B.dataset.was === "repaired")) {
      count(...(repaired ? [before, after] : [after, before]));
      B.dataset.was = repaired ? "repaired" : "";
    }
    find("h3", B).innerHTML = `Layer B${repaired ? " <small>repaired</small>" : ""}`;
    told.textContent = repaired ? "Code right, answers wrong" : broken;
    find(".now", B).innerHTML = `<span>out</span>${repaired ? data.after : data.before}`;
    const next = steps.find((step) => !done.has(step));
    for (const step of steps) {
      step.classList.toggle("next", step === next);
      step.classList.toggle("done", done.has(step));
    }
    find(".twist").hidden = done.size < steps.length;
  }
  const says = {
    "step-guess": () => `${find("#verdict").textContent} The maps now lie in a pile: A `
      + "shows four diagonals on top of each other, B shows one.",
    "step-repair": () => `With correct code, the accuracy of B falls from `
      + `${before.toFixed(3)} to ${after.toFixed(3)}.`,
    "step-law": () => find("#step-law > p:last-of-type").textContent,
  };
  for (const step of steps) {
    step.addEventListener("toggle", () => {
      if (step.open) {
        for (const other of steps) if (other !== step) other.open = false;
        done.add(step);
        find("#live").textContent = says[step.id]();
      }
      show();
    });
  }
  for (const button of all(".choose")) {
    button.addEventListener("click", () => {
      const right = button.closest(".layer") === B;
      find("#verdict").textContent = right ? "Yes, it is B." : "It is B, not A.";
      guess.open = true;
      find("summary", guess).focus({ preventScroll: true });
    });
  }
  show();
})();
