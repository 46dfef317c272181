// Where a link leads, and what a search has found, is not hidden; paper shows everything.
// What scrolls sideways can be reached by keyboard.
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

  function reach() {
    const boxes = [...document.querySelectorAll("article :is(pre, .table-wrapper)")]
      .filter((box) => !box.closest("details:not([open])"));
    const wide = boxes.filter((box) => box.scrollWidth > box.clientWidth);
    for (const box of boxes) if (box.tabIndex === 0) box.removeAttribute("tabindex");
    for (const box of wide) box.tabIndex = 0;
  }
  addEventListener("load", reach);
  addEventListener("resize", reach);
  document.addEventListener("toggle", reach, true);

  let shut = [];
  addEventListener("beforeprint", () => {
    shut = [...document.querySelectorAll("article details:not([open])")];
    shut.forEach((fold) => { fold.open = true; });
  });
  addEventListener("afterprint", () => shut.forEach((fold) => { fold.open = false; }));
})();
