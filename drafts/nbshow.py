import json,sys
nb=json.load(open(sys.argv[1]))
for i,c in enumerate(nb["cells"]):
    print(f"--- [{i}] {c['cell_type']} {c['id']} tags={c['metadata'].get('tags')}")
    print("".join(c["source"]))
    for o in c.get("outputs",[]):
        t=o.get("text") or o.get("data",{}).get("text/plain") or ""
        t="".join(t)
        if t: print("   >>", t[:600].replace("\n","\n   >> "))
