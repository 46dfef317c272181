// The meaning of a word of the glossary: on hover, on focus, and on the first tap.
(() => {
  const box = document.createElement("div");
  Object.assign(box, { id: "meaning", role: "tooltip", hidden: true });
  document.querySelector("article").append(box);
  let shown = null, later = 0, tapped = false;

  function hide() {
    shown?.removeAttribute("aria-describedby");
    shown = null;
    box.hidden = true;
  }
  function show(link) {
    clearTimeout(later);
    if (shown === link) return;
    hide();
    shown = link;
    box.textContent = link.dataset.meaning;
    box.hidden = false;
    link.setAttribute("aria-describedby", box.id);
    const { left, bottom, top } = link.getBoundingClientRect();
    const from = box.offsetParent.getBoundingClientRect();
    const x = Math.min(left, document.body.clientWidth - box.offsetWidth - 8);
    const high = box.offsetHeight + 4;
    const y = bottom + high < innerHeight ? bottom + 4 : top - high;
    box.style.left = `${Math.max(8, x) - from.x}px`;
    box.style.top = `${y - from.y}px`;
  }
  // A pointer may cross over to the box.
  const leave = () => { later = setTimeout(hide, 250); };
  box.onpointerenter = () => clearTimeout(later);
  box.onpointerleave = leave;

  for (const link of document.querySelectorAll("a[title]:has(> .std-term)")) {
    link.dataset.meaning = link.title;
    link.removeAttribute("title");
    link.onpointerenter = (e) => e.pointerType === "mouse" && show(link);
    link.onpointerleave = (e) => e.pointerType === "mouse" && leave();
    link.onpointerdown = (e) => { tapped = e.pointerType !== "mouse"; };
    link.onfocus = () => link.matches(":focus-visible") && show(link);
    link.onblur = hide;
    link.onclick = (e) => {
      if (tapped && shown !== link) e.preventDefault(); // the second follows
      if (tapped) show(link);
    };
  }
  addEventListener("keydown", (e) => { tapped = false; e.key === "Escape" && hide(); });
  addEventListener("pointerdown", (e) => shown?.contains(e.target) || hide());
})();
