"""3-way merge of notebooks by cell id. nbmerge.py path..."""
import json,subprocess,sys
def get(stage,path): return json.loads(subprocess.run(["git","show",f":{stage}:{path}"],capture_output=True,text=True,check=True).stdout)
for path in sys.argv[1:]:
    base,ours,theirs=(get(s,path) for s in (1,2,3))
    B,O,T=({c["id"]:c for c in n["cells"]} for n in (base,ours,theirs))
    order=[c["id"] for c in ours["cells"]]
    # cells added by theirs: insert after their predecessor
    prev=None
    for c in theirs["cells"]:
        if c["id"] not in B and c["id"] not in order:
            order.insert(order.index(prev)+1 if prev in order else len(order), c["id"])
        prev=c["id"]
    out=[]
    for i in order:
        o,t,b=O.get(i),T.get(i),B.get(i)
        if o is None: out.append(t); continue
        if t is None:
            if b is None: out.append(o); continue
            # deleted by theirs
            if o["source"]!=b["source"]: print(path,i,"deleted by theirs, source changed by ours: deleted")
            continue
        if b is None: out.append(o); continue
        if o["source"]==b["source"]: c=t if (t["source"]!=b["source"] or t.get("outputs")!=b.get("outputs")) else o
        elif t["source"]==b["source"] or t["source"]==o["source"]: c=o
        else:
            import tempfile,os
            fs=[]
            for n in (o,b,t):
                f=tempfile.NamedTemporaryFile("w",delete=False); f.write("".join(n["source"])+"\n"); f.close(); fs.append(f.name)
            r=subprocess.run(["git","merge-file","-p",*fs],capture_output=True,text=True)
            c=dict(o); c["source"]=r.stdout.rstrip("\n").splitlines(keepends=True)
            if r.returncode: print(path,i,"CONFLICT in cell:\n"+r.stdout)
            else: print(path,i,"merged both")
        out.append(c)
    # deleted by ours: already not in order
    ours["cells"]=out
    ours["metadata"]=ours["metadata"]
    open(path,"w").write(json.dumps(ours,indent=1,ensure_ascii=False)+"\n")
