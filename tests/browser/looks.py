"""What a browser sees of a page: failures, other hosts, barriers, what is too wide."""

import pytest

axe = pytest.importorskip("axe_playwright_python.sync_playwright")

# Formulas are left out where they are drawn (hidden from readers), not their MathML.
DRAWN = {"exclude": [["mjx-math"]]}
# Formulas that were left as TeX, or that MathJax could not read.
RAW_MATH = """[...document.querySelectorAll(".math")]
    .filter((node) => !node.querySelector("mjx-container math")
                      || node.querySelector("[data-mjx-error]"))
    .map((node) => node.textContent.slice(0, 80))"""
SIDEWAYS = "document.documentElement.scrollWidth - innerWidth"
# Text in static figures, in pixels of the screen, with everything unfolded.
SMALL_TEXT = """() => {
    const folds = [...document.querySelectorAll("article details:not([open])")];
    folds.forEach((fold) => { fold.open = true; });
    const small = [...document.querySelectorAll("svg.mha-picture text")]
        .filter((text) => text.getClientRects().length && text.textContent.trim())
        .map((text) => {
            const { a, b } = text.getScreenCTM();
            const size = parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
            return [size, `${size.toFixed(1)} px: ${text.textContent}`];
        })
        .filter(([size]) => size < 9).map(([, text]) => text);
    folds.forEach((fold) => { fold.open = false; });
    return small;
}"""


def watch(page, host):
    """Return a list that fills with whatever goes wrong while the page loads."""
    wrong = []

    def requested(request):
        if not request.url.startswith((host, "data:", "blob:", "about:")):
            wrong.append(f"foreign {request.url}")

    def answered(response):
        if response.status >= 400:
            wrong.append(f"{response.status} {response.url}")

    def failed(request):
        # A page that is left stops what it still loads.
        if request.failure != "net::ERR_ABORTED":
            wrong.append(f"failed {request.url}")

    handlers = {
        "console": lambda said: said.type == "error" and wrong.append(said.text),
        "pageerror": lambda error: wrong.append(str(error)),
        "requestfailed": failed,
        "request": requested,
        "response": answered,
    }
    for event, handler in handlers.items():
        page.on(event, handler)
    return wrong


def barriers(page, context=DRAWN):
    """Return what axe objects to."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe.Axe().axe_script)
    options = {"resultTypes": ["violations"], "preload": False}
    found = page.evaluate(
        "([context, options]) => axe.run(context, options)", [context, options]
    )
    return [
        f"{v['id']}: {node['html'][:200]}"
        for v in found["violations"]
        for node in v["nodes"]
    ]
