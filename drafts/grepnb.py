import json,sys,glob,re
pat=re.compile(sys.argv[1])
for f in sorted(glob.glob("book/*.ipynb")+glob.glob("book/solutions/*.ipynb")):
    nb=json.load(open(f))
    for i,c in enumerate(nb["cells"]):
        s=re.sub(r"\s+"," ","".join(c["source"]))
        for m in pat.finditer(s):
            print(f"{f}[{i}] {c['id']}: …{s[max(0,m.start()-int(sys.argv[2]) if len(sys.argv)>2 else 150):m.end()+300]}…")
