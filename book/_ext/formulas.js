// Read {root, macros, fonts, formulas: [[tex, display], ...]} from stdin and write
// {css, html: [...]} to stdout. MathJax runs here, once, and not on every page view.
const { root, macros, fonts, formulas } = JSON.parse(require("fs").readFileSync(0));

global.MathJax = {
  loader: {
    paths: { mathjax: root },
    require,
    load: [
      "core", "adaptors/liteDOM", "input/tex-full", "output/chtml",
      "output/chtml/fonts/tex", "a11y/assistive-mml", // for screen readers
    ],
  },
  tex: { macros },
  chtml: { fontURL: fonts, scale: 1.15, matchFontHeight: false },
  startup: { typeset: false },
};
require(`${root}/startup.js`);

function render([tex, display]) {
  const adaptor = MathJax.startup.adaptor;
  return adaptor.outerHTML(MathJax.tex2chtml(tex, { display }));
}

MathJax.startup.promise.then(() => {
  const html = formulas.map(render);
  const css = MathJax.startup.adaptor.textContent(MathJax.chtmlStylesheet());
  process.stdout.write(JSON.stringify({ css, html }));
});
