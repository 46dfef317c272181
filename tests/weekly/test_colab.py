"""The copies of the notebooks for Colab and Binder."""

import json

from tests.book.load import ROOT, load

REPOSITORY = "https://github.com/somebody/book.git"


def test_the_copy_for_colab_installs_before_it_computes(tmp_path):
    load(ROOT / ".ci" / "colab", "colab").main(REPOSITORY, tmp_path)
    pattern = "book/**/[0-9]*.ipynb"
    copies = sorted(path.relative_to(tmp_path) for path in tmp_path.glob(pattern))
    assert copies == sorted(path.relative_to(ROOT) for path in ROOT.glob(pattern))
    for name in copies:
        copy = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        first = next(c for c in copy["cells"] if c["cell_type"] == "code")
        assert first["id"] == "install"
        source = "".join(first["source"])
        assert REPOSITORY in source
        assert "import torch" not in json.dumps(copy) or "torch --extra" in source
        assert f"%cd ~/head-by-head/{name.parent.as_posix()}" in source
