import json,sys
f=sys.argv[1]; nb=json.load(open(f))
for k in sys.argv[2:]:
    for i,c in enumerate(nb["cells"]):
        if c["id"]==k or str(i)==k:
            print(f"--- [{i}] {c['id']}"); print("".join(c["source"]))
            for o in c.get("outputs",[]): print("  >>","".join(o.get("text") or o.get("data",{}).get("text/plain") or "")[:800])
