"""Every link within the book leads somewhere."""

import re
from html import unescape
from urllib.parse import unquote, urldefrag

NAMED = re.compile(r'\s(?:id|name)="([^"]+)"')
SCRIPT = r"<script.*?</script>"
LINKED = re.compile(r'\s(?:href|src)="([^"]+)"')


def test_every_internal_link_and_anchor_exists_once(html):
    pages = {
        path.resolve(): path.read_text(encoding="utf-8")
        for path in html.rglob("*.html")
        # the links of 404.html begin at the root, because it is shown at any depth
        if path.name != "404.html" and "_static" not in path.parts
    }
    ids = {path: {*NAMED.findall(page)} for path, page in pages.items()}
    broken = []
    for path, page in pages.items():
        for link in map(unescape, LINKED.findall(page)):
            if ":" in link.split("/")[0]:
                continue  # another host, mail, or data
            address, anchor = urldefrag(link)
            address = address.partition("?")[0]
            target = (path.parent / unquote(address)).resolve() if address else path
            if not target.exists():
                broken.append(f"{path.name} -> {link}")
            elif anchor and unquote(anchor) not in ids.get(target, {unquote(anchor)}):
                broken.append(f"{path.name} -> {link}: no such anchor")
    assert len(pages) > 10 and broken == []
    for path, page in pages.items():
        found = re.findall(r'\sid="([^"]+)"', re.sub(SCRIPT, "", page, flags=re.S))
        assert len(found) == len(set(found)), path.name
