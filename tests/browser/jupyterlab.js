// What a reader does in JupyterLab, and what she then sees of the notebook in front.
window.book = (() => {
  const { commands, shell } = window.jupyterapp;
  const PROSE = ".jp-RenderedMarkdown";
  const OUTPUT = ".jp-OutputArea-output";
  const FOLDED = ".jp-OutputPlaceholder";

  const panel = () => shell.currentWidget;
  const all = (selector, node = panel().content.node) => [...node.querySelectorAll(selector)];
  const seen = (node) => node.checkVisibility() && node.getBoundingClientRect().width > 0;
  const shown = (selector, node) => all(selector, node).filter(seen);

  async function until(holds, seconds = 60) {
    for (const end = Date.now() + 1000 * seconds; Date.now() < end;) {
      if (holds()) return;
      await new Promise((done) => setTimeout(done, 150));
    }
  }

  // a cell is drawn first, and the formulas in it are set later
  const drawn = (node) => node.querySelector(PROSE)?.textContent.trim();
  function typeset(node) {
    const texts = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    while (texts.nextNode())
      if (texts.currentNode.data.includes("$") && !texts.currentNode.parentElement.closest("code, pre"))
        return false;
    return true;
  }

  async function settled() {
    const cells = panel().content.widgets;
    await until(() => cells.every(({ node }) => node.isConnected) && all(".jp-MarkdownCell").every(drawn));
    let waiting = all(PROSE);
    await until(() => (waiting = waiting.filter((node) => !typeset(node))).length === 0);
    await Promise.all(all("img").map((image) => image.decode().catch(() => null)));
  }

  async function open(path, kernel = {}) {
    const kernelPreference = { shouldStart: false, ...kernel };
    const opened = await commands.execute("docmanager:open", { path, factory: "Notebook", kernelPreference });
    await Promise.all([opened.context.ready, opened.revealed]);
    await settled();
  }

  // deeper sections are closed at first, and what is in them counts as hidden
  async function expand() {
    await commands.execute("notebook:expand-all-headings");
    await until(() => panel().content.widgets.every((cell) => !cell.isHidden));
    await settled();
  }

  function unfold() {
    for (const summary of all(`${PROSE} summary`)) summary.click();
    for (const line of all(`${FOLDED} .jp-Placeholder-content`)) line.click();
  }

  const output = (node) => ({
    text: node.innerText.trim(),
    images: shown("img", node).map((image) => [image.naturalWidth, image.getBoundingClientRect().width]),
  });

  function look() {
    return {
      path: panel().context.path,
      text: shown(`${PROSE}, ${OUTPUT}, ${FOLDED}`).map((node) => node.innerText).join("\n"),
      cells: Object.fromEntries(panel().content.widgets.map(({ model, node }) => [model.id, {
        code: shown(".jp-InputArea-editor", node).length > 0,
        outputs: shown(OUTPUT, node).map(output),
        preview: shown(FOLDED, node).map((line) => line.innerText.trim()).join(""),
      }])),
      folds: all(`${PROSE} details`).map((fold) => fold.open),
      captions: shown(`${PROSE} p > strong:first-of-type`)
        .map((node) => /^Figure ([\d.]+)\.$/.exec(node.innerText)?.[1]).filter(Boolean),
      numbers: all(`${PROSE} mjx-assistive-mml mlabeledtr > mtd:first-child`).map((node) => node.textContent),
      broken: all("merror, mjx-merror").map((node) => node.textContent),
      errors: all("[data-mime-type$='.stderr'], [data-mime-type$='.error']").map((node) => node.innerText),
      wide: shown(`${PROSE}, ${OUTPUT}, ${OUTPUT} pre`)
        .filter((node) => node.scrollWidth > node.clientWidth + 1).map((node) => node.innerText),
      anchors: all("[data-jupyter-id]").map((node) => node.dataset.jupyterId),
      links: all(`${PROSE} a[href^='#']:not(.jp-InternalAnchorLink)`).map((link) => link.getAttribute("href").slice(1)),
      dialogs: [...document.querySelectorAll(".jp-Dialog")].map((node) => node.innerText),
    };
  }

  const path = () => panel()?.context?.path;

  return { path, open, expand, unfold, look };
})();
