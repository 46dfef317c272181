// Where a link leads, and what a search has found, is not hidden; paper shows everything.
// What scrolls sideways can be reached by keyboard. A prediction has a place for a guess.
(() => {
  const SHUT = "details:not([open])";
  function open(node) {
    for (let at = node?.parentElement; at; at = at.parentElement)
      if (at.tagName === "DETAILS") at.open = true;
    ask();
  }
  function follow() {
    const node = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    open(node);
    node?.scrollIntoView();
  }
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href*='#']");
    if (link?.hash && link.hash === location.hash) follow();
  });
  addEventListener("load", () => {
    const isBack = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
    if (location.hash && !isBack) follow();
    setTimeout(() => { // what a search has found is marked a moment after loading
      const found = document.querySelectorAll("details .highlighted");
      found.forEach(open);
      if (found.length && location.hash) follow();
    }, 100);
  });

  function reach() {
    const boxes = [...document.querySelectorAll("pre, .table-wrapper")]
      .filter((box) => !box.closest(SHUT)); // to measure it lays it out
    const wide = boxes.map((box) => box.scrollWidth > box.clientWidth);
    boxes.forEach((box, k) => {
      if (wide[k]) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  }
  addEventListener("load", reach);
  addEventListener("resize", reach);
  document.addEventListener("toggle", reach, true);

  let shut = [];
  addEventListener("beforeprint", () => {
    shut = [...document.querySelectorAll(`article ${SHUT}`)];
    shut.forEach((fold) => { fold.open = true; });
  });
  addEventListener("afterprint", () => shut.forEach((fold) => { fold.open = false; }));

  // A guess stays for the visit, and opens the answer, which is the next one on the page.
  // In a fold it is made when the fold opens: a browser that fills in forms for its reader
  // would lay out the whole fold to look at a field.
  const answers = [...document.querySelectorAll("details.answer")];
  const places = [...document.querySelectorAll(".guess")];
  function ask() {
    places.forEach((place, number) => {
      if (place.hidden && !place.closest(SHUT)) makeForm(place, number);
    });
  }
  function makeForm(place, number) {
    const key = `guess ${number} of ${location.pathname}`;
    const answer = answers.find((fold) =>
      place.compareDocumentPosition(fold) & Node.DOCUMENT_POSITION_FOLLOWING);
    const choices = place.textContent.split(" / ").filter(Boolean);
    const form = document.createElement("form");
    form.innerHTML = choices.length
      ? "<fieldset><legend>Your guess</legend></fieldset>"
      : "<label>Your guess <input name=guess autocomplete=off></label> <button>Compare</button>";
    for (const choice of choices) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: choice });
      button.onclick = () => keep(choice);
      form.firstChild.append(button);
    }
    form.onsubmit = (event) => { event.preventDefault(); keep(form.guess.value.trim()); };
    function show(guess) {
      if (form.guess) form.guess.value = guess;
      for (const button of form.querySelectorAll("[type=button]"))
        button.ariaPressed = button.textContent === guess;
    }
    function keep(guess) {
      if (!guess) return;
      sessionStorage.setItem(key, guess);
      show(guess);
      if (answer) answer.open = true;
    }
    place.replaceChildren(form);
    place.hidden = false;
    show(sessionStorage.getItem(key) ?? "");
  }
  ask();
  document.addEventListener("toggle", ask, true);

  // The theme marks in the contents where a reader is. Of what is shut it shall not ask:
  // to say where that is, a browser lays out the whole fold, again at every scroll.
  for (const link of document.querySelectorAll(".toc-tree a[href^='#']")) {
    const { hash } = link;
    if (!document.getElementById(decodeURIComponent(hash.slice(1)))?.closest(SHUT)) continue;
    link.removeAttribute("href");
    addEventListener("DOMContentLoaded", () => { link.href = hash; });
  }

  // A page on a disk is always a first visit, and its typefaces are near: it waits.
  const bring = (name, file, more) => location.protocol === "file:" && document.fonts.add(new FontFace(
    name, `url(${document.documentElement.dataset.content_root}_static/fonts/${file}.woff2)`, more));
  bring("Book Sans", "sans", { weight: "400 700" });
  bring("Book Sans", "sans-italic", { style: "italic" });
  bring("Book Serif", "serif", { weight: 600 });

  // With ?slides behind the address, each section of the core is a slide.
  function present() {
    const chapter = document.querySelector("article section:has(> h1)");
    const parts = [...chapter.children];
    const first = parts.findIndex((part) => part.tagName === "SECTION");
    const slides = [parts.slice(0, first)];
    for (const part of parts.slice(first)) {
      if (part.tagName !== "SECTION" || part.id === "code-and-checks") break;
      slides.push([part]);
    }
    let at = 0;
    function show(k) {
      at = Math.min(Math.max(k, 0), slides.length - 1);
      parts.forEach((part) => { part.hidden = !slides[at].includes(part); });
      document.title = `${at + 1} of ${slides.length}`;
      scrollTo({ top: 0, behavior: "instant" });
    }
    const steps = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 };
    addEventListener("keydown", (event) => {
      const typing = event.target.closest("input, textarea, select, [contenteditable], svg, [role]");
      if (event.key === "Escape") location.search = "";
      if (typing?.closest("article section") || !steps[event.key]) return;
      event.preventDefault();
      show(at + steps[event.key]);
    });
    document.documentElement.classList.add("slides");
    show(0);
  }
  if (new URLSearchParams(location.search).has("slides")) present();
})();
