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

// MathJax 3 never breaks a line, so a formula that is wider than a phone is cut into
// pieces here: between two equations, then before each relation, then before each sum,
// then inside parentheses, as far as needed. The browser starts a new line between two
// pieces where it must.
const [BIN, REL, OPEN, CLOSE, PUNCT] = [2, 3, 4, 5, 6]; // MathJax's classes of signs
const WIDE = { true: 16, false: 12 }; // em: what a phone shows, displayed or in a line
const LEVELS = [
  (sign, depth, after) => depth === 0 && after,
  (sign, depth, after) => depth === 0 && (after || sign === REL),
  (sign, depth, after) => depth === 0 && (after || sign === REL || sign === BIN),
  (sign, depth, after) => after || sign === REL || sign === BIN,
];

function cuts(parts, may) {
  const starts = [0];
  let depth = 0;
  parts.forEach(({ sign, after }, i) => {
    const first = i === starts.at(-1);
    if (!first && i && may(sign, depth, after)) starts.push(i);
    depth += (sign === OPEN) - (sign === CLOSE);
  });
  return starts;
}

function pieces(parts) {
  let best = [0];
  for (const may of LEVELS) {
    best = cuts(parts, may);
    if (Math.max(...widths(parts, best)) <= WIDE.true) break;
  }
  return best;
}

function widths(parts, starts) {
  return starts.map((start, k) =>
    parts.slice(start, starts[k + 1]).reduce((sum, { width }) => sum + width, 0));
}

function describe(wrapper) {
  return wrapper.childNodes.map((child, i, all) => {
    const { L, w, R } = child.getOuterBBox();
    const before = all[i - 1]?.node;
    return { sign: child.node.texClass, width: L + w + R,
             after: before && (before.texClass === PUNCT || before.isKind("mspace")) };
  });
}

function render([tex, display]) {
  const adaptor = MathJax.startup.adaptor;
  const { document: doc, output } = MathJax.startup;
  const item = new doc.options.MathItem(tex, doc.inputJax[0], display);
  item.start.node = adaptor.body(doc.document);
  item.setMetrics(16, 8, 1e6, 1e6, 1);
  item.convert(doc);
  output.nodeMap = new Map(); // which output.getBBox makes and drops
  const line = output.factory.wrap(item.root).childNodes[0]; // the row in a formula
  const box = adaptor.tags(item.typesetRoot, "mjx-math")[0];
  const drawn = adaptor.childNodes(box);
  const parts = describe(line);
  let need = parts.reduce((sum, { width }) => sum + width, 0);
  if (need > WIDE[display] && parts.length === drawn.length) {
    const starts = pieces(parts);
    if (starts.length > 1) {
      adaptor.setAttribute(box, "data-pieces", starts.length);
      starts.forEach((start, k) => {
        const piece = adaptor.node("mjx-piece", {}, drawn.slice(start, starts[k + 1]));
        adaptor.append(box, piece);
      });
      need = Math.max(...widths(parts, starts));
    }
  }
  if (need > WIDE[display]) adaptor.setStyle(item.typesetRoot, "--need", need.toFixed(1));
  return adaptor.outerHTML(item.typesetRoot);
}

MathJax.startup.promise.then(() => {
  const html = formulas.map(render);
  const css = MathJax.startup.adaptor.textContent(MathJax.chtmlStylesheet());
  process.stdout.write(JSON.stringify({ css, html }));
});
