"""edits: FILE, then pairs old/new; each old must occur exactly once in one cell of the notebook (or in the text file)."""
import json, sys
def edit(f, pairs):
    if f.endswith(".ipynb"):
        raw = open(f).read(); nb = json.loads(raw)
        for old, new in pairs:
            hits = [c for c in nb["cells"] if old in "".join(c["source"])]
            if len(hits) != 1 or "".join(hits[0]["source"]).count(old) != 1:
                print("!!", f, len(hits), old[:80]); continue
            s = "".join(hits[0]["source"]).replace(old, new)
            hits[0]["source"] = s.splitlines(keepends=True)
        out = json.dumps(nb, indent=1, ensure_ascii=False) + "\n"
        open(f, "w").write(out)
    else:
        s = open(f).read()
        for old, new in pairs:
            if s.count(old) != 1: print("!!", f, s.count(old), old[:80]); continue
            s = s.replace(old, new)
        open(f, "w").write(s)
