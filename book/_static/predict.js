// Guesses are kept in this browser and never sent. A fold opens for whoever is led there.
(() => {
  const page = document.currentScript.dataset.page;
  const folds = document.querySelectorAll("details.reveal");

  function keep(id, text) {
    const key = `head-by-head:guess:${page}:${id}`;
    try {
      if (text === undefined) return localStorage.getItem(key) ?? "";
      if (text.trim()) localStorage.setItem(key, text);
      else localStorage.removeItem(key);
    } catch { /* a browser that keeps nothing */ }
    return "";
  }
  function fit(area) {
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight + area.offsetHeight - area.clientHeight}px`;
  }
  document.querySelectorAll(".your-guess").forEach((box, count) => {
    const area = box.querySelector("textarea");
    const name = area.id.replace(/^guess-/, "");
    area.value = keep(name);
    area.oninput = () => { keep(name, area.value); fit(area); };
    box.querySelector("p").classList.toggle("visually-hidden", count > 0); // said once
    box.hidden = false;
    if (area.value) fit(area); // else it fits
    addEventListener("resize", () => fit(area));
  });

  // Where a link leads, and what a search has found, is not hidden.
  function open(node) {
    for (let at = node?.parentElement; at; at = at.parentElement)
      if (at.tagName === "DETAILS") at.open = true;
  }
  function follow() {
    const node = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!node?.closest("details.reveal")) return;
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
    const found = "details.reveal .highlighted"; // marked a moment after loading
    setTimeout(() => document.querySelectorAll(found).forEach(open), 100);
  });

  // Paper shows everything.
  let shut = [];
  addEventListener("beforeprint", () => {
    shut = [...folds].filter((fold) => !fold.open);
    shut.forEach((fold) => { fold.open = true; });
  });
  addEventListener("afterprint", () => shut.forEach((fold) => { fold.open = false; }));
})();
