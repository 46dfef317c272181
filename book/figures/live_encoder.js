// Around it stands: (() => { const root = …; this })(). On a page of the book it brings what
// the figure needs from beside the page, once it comes into view. A notebook keeps the picture.
const home = document.documentElement.dataset.content_root;
const folder = `${home}_static/live_encoder/`;
const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
function bring(tag, look) {
  const node = Object.assign(document.createElement(tag), look);
  document.head.append(node);
  return node;
}
const seen = new IntersectionObserver(([{ isIntersecting }]) => {
  if (!isIntersecting) return;
  seen.disconnect();
  bring("link", { rel: "stylesheet", href: `${folder}live.css` });
  // Scripts run in this order; modules would not load from a disk.
  const scripts = ["model", "right", "live"].map((name) => bring("script", { async: false, src: `${folder}${name}.js` }));
  scripts[2].onload = () => liveEncoder(root, folder, data);
}, { rootMargin: "200px" });
if (home !== undefined) seen.observe(root);
