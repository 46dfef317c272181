import sys,asyncio,pathlib
from playwright.sync_api import sync_playwright
root=pathlib.Path(sys.argv[1]); out=pathlib.Path(sys.argv[2]); out.mkdir(exist_ok=True,parents=True)
pages=sys.argv[3].split(",")
full = len(sys.argv)>4
with sync_playwright() as p:
    b=p.chromium.launch(executable_path="/usr/bin/chromium",args=["--no-sandbox"])
    for w,h in ((1280,900),(390,844)):
        for scheme in ("light","dark"):
            c=b.new_context(viewport={"width":w,"height":h},color_scheme=scheme)
            pg=c.new_page()
            for name in pages:
                pg.goto(f"file://{root}/{name}.html"); pg.wait_for_timeout(500)
                pg.screenshot(path=str(out/f"{name.replace('/','_')}_{w}_{scheme}.png"),full_page=full)
            c.close()
