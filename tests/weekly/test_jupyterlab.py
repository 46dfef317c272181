"""A notebook in JupyterLab, as a learner first meets it: untrusted and not run."""

import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from tests.book.load import ROOT

pytest.importorskip("jupyterlab", reason="no JupyterLab in this environment")

NAME = "02_softmax"
RAW = re.compile(
    r"""\{(doc|eq|ref|numref|term|cite|math|py)\b[^}\n]*\}`   # a role
    | ```\{ | ^:\w+: | ^\([\w-]+\)=$                           # a directive, a label
    | \\(tag|begin|frac|sqrt|text|operatorname)\b | \$\$       # a formula
    | </?(a|p|b|div|svg|details|summary)\b                     # HTML
    | Undefined\ control\ sequence""",
    re.VERBOSE | re.MULTILINE,
)
OPTIONS = [
    "--allow-root", "--no-browser", "--ip=127.0.0.1", "--IdentityProvider.token=",
    "--LabApp.extension_manager=readonly",
]  # fmt: skip
# Every cell is drawn, not only those on the screen.
SETTINGS = {"@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"}}
TYPESET = """() => {
    const texts = [...document.querySelectorAll(".jp-RenderedMarkdown")];
    return texts.length > 20 && document.querySelector("mjx-container")
        && texts.every((node) => !node.innerText.includes("$$"));
}"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Run JupyterLab on a copy of the notebook; yield its address."""
    folder = tmp_path_factory.mktemp("jupyterlab")
    places = {kind: folder / kind.lower() for kind in ("CONFIG", "DATA", "RUNTIME")}
    overrides = places["CONFIG"] / "labconfig" / "default_setting_overrides.json"
    overrides.parent.mkdir(parents=True)
    overrides.write_text(json.dumps(SETTINGS))
    shutil.copy(ROOT / "book" / f"{NAME}.ipynb", folder)
    environment = {f"JUPYTER_{kind}_DIR": str(path) for kind, path in places.items()}
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *OPTIONS],
        env={**os.environ, **environment}, cwd=folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(600):
            found = [json.loads(path.read_text() or "{}").get("url")
                     for path in places["RUNTIME"].glob("jpserver-*.json")]  # fmt: skip
            if any(found) or server.poll() is not None:
                break
            time.sleep(0.2)
        yield found[0]
    finally:
        server.kill()
        server.wait()


def test_a_notebook_reads_well_before_and_after_its_folds_are_opened(chromium, url):
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{url}lab/tree/{NAME}.ipynb?reset")
    page.wait_for_function(TYPESET, timeout=120_000)
    prose = page.locator(".jp-RenderedMarkdown")
    folds = page.locator(".jp-RenderedMarkdown details")
    assert folds.count() > 5 and page.locator("details[open]").count() == 0
    text = "\n".join(prose.all_inner_texts())
    folds.evaluate_all("all => all.forEach((fold) => { fold.open = true; })")
    text += "\n".join(prose.all_inner_texts())
    assert [found[0] for found in RAW.finditer(text)] == []
    assert page.locator("merror, mjx-merror").count() == 0
    assert page.locator("[data-mime-type$='.error']").count() == 0
    images = page.locator(".jp-OutputArea-output img")
    assert images.count() > 2
    assert min(images.evaluate_all("all => all.map((i) => i.naturalWidth)")) > 200
    page.close()
