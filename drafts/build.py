"""build.py OLD.ipynb SPEC.md: write the notebook that the spec describes over OLD.

Spec: blocks that begin with a line
  @@ keep ID [level]        the old cell, with its output
  @@ md ID [level]          a markdown cell, text follows
  @@ code ID [level] [tags] a code cell, source follows
level: core, checks, deeper.
"""
import json, re, sys
path, spec = sys.argv[1:3]
nb = json.load(open(path)); old = {c["id"]: c for c in nb["cells"]}
cells = []
for block in re.split(r"^@@ ", open(spec).read(), flags=re.M)[1:]:
    head, _, body = block.partition("\n")
    kind, name, *more = head.split()
    level = [x for x in more if x in ("core", "checks", "deeper")]
    tags = [x for x in more if x not in ("core", "checks", "deeper")]
    if kind == "keep":
        cell = old[name]
    else:
        cell = dict(old.get(name, {"metadata": {}, "id": name}))
        cell["cell_type"] = {"md": "markdown", "code": "code"}[kind]
        cell["source"] = body.strip("\n").splitlines(keepends=True)
        if kind == "code":
            cell.setdefault("execution_count", None); cell.setdefault("outputs", [])
            cell["metadata"] = {"tags": tags} if tags else {}
        else:
            cell.pop("outputs", None); cell.pop("execution_count", None); cell["metadata"] = {}
    cell["metadata"]["level"] = level[0] if level else None
    cells.append(cell)
gone = set(old) - {c["id"] for c in cells}
print("gone:", sorted(gone))
nb["cells"] = cells
json.dump(nb, open(path, "w"), indent=1, ensure_ascii=False); open(path, "a").write("\n")
