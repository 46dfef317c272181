// Where a link leads, and what a search has found, is not hidden; paper shows everything.
// What scrolls sideways can be reached by keyboard. None of it lays out what is not seen.
(() => {
  function open(node) {
    for (let at = node?.parentElement; at; at = at.parentElement)
      if (at.tagName === "DETAILS") at.open = true;
  }
  function follow() {
    const node = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!node?.closest("details")) return;
    open(node);
    node.scrollIntoView();
  }
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href*='#']");
    if (link?.hash && link.hash === location.hash) follow();
  });
  addEventListener("load", () => {
    follow();
    const found = "details .highlighted"; // marked a moment after loading
    setTimeout(() => document.querySelectorAll(found).forEach(open), 100);
  });

  function reach(part) {
    for (const box of part.querySelectorAll("pre, .table-wrapper")) {
      if (box.closest("details:not([open])")) continue;
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  }
  const parts = [...document.querySelectorAll("article > section > *")];
  const near = new Set(parts.filter((part) => // others are not laid out yet
    getComputedStyle(part).contentVisibility !== "auto"));
  document.addEventListener("contentvisibilityautostatechange", ({ target, skipped }) => {
    near[skipped ? "delete" : "add"](target);
    if (!skipped) reach(target);
  });
  addEventListener("load", () => near.forEach(reach));
  addEventListener("resize", () => near.forEach(reach));
  document.addEventListener("toggle", ({ target }) => reach(target), true);

  let shut = [];
  addEventListener("beforeprint", () => {
    shut = [...document.querySelectorAll("article details:not([open])")];
    shut.forEach((fold) => { fold.open = true; });
  });
  addEventListener("afterprint", () => shut.forEach((fold) => { fold.open = false; }));

  // The sections in sight are marked in the contents of the page.
  const marks = new Map([...document.querySelectorAll(".toc-tree a[href^='#']")]
    .map((link) => [document.getElementById(link.hash.slice(1)), link.parentElement]));
  const spy = new IntersectionObserver((seen) => seen.forEach(({ target, isIntersecting }) =>
    marks.get(target).classList.toggle("scroll-current", isIntersecting)),
  { rootMargin: "-20% 0px -79%" });
  marks.forEach((_, section) => section && spy.observe(section));

  // The list of chapters shows where this one stands.
  addEventListener("load", () => {
    const here = document.querySelector(".sidebar-tree .current-page");
    const top = here?.getBoundingClientRect().top - innerHeight / 2;
    if (here) here.closest(".sidebar-scroll").scrollTop = top;
  });

  // A page on a disk is always a first visit, and its typefaces are near: it waits.
  const bring = (name, file, more) => location.protocol === "file:" && document.fonts.add(new FontFace(
    name, `url(${document.documentElement.dataset.content_root}_static/fonts/${file}.woff2)`, more));
  bring("Book Sans", "sans", { weight: "400 700" });
  bring("Book Sans", "sans-italic", { style: "italic" });
  bring("Book Serif", "serif", { weight: 600 });

  // By day, by night, or as the system says.
  const themes = ["auto", "light", "dark"];
  for (const button of document.querySelectorAll(".theme-toggle"))
    button.onclick = () => {
      const next = themes[(themes.indexOf(document.body.dataset.theme) + 1) % 3];
      document.body.dataset.theme = localStorage.theme = next;
    };
})();
