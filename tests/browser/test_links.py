"""Every link within the book leads somewhere."""

from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag


class Page(HTMLParser):
    """Collect what can be linked to, and what is linked."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids |= {attributes.get("id"), attributes.get("name")} - {None}
        for key in ("href", "src"):
            if attributes.get(key):
                self.links.append(attributes[key])


def test_every_internal_link_and_anchor_exists(html):
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8"))
        for path in html.rglob("*.html")
        # the links of 404.html begin at the root, because it is shown at any depth
        if path.name != "404.html" and "_static" not in path.parts
    }
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if ":" in link.split("/")[0]:
                continue  # another host, mail, or data
            address, anchor = urldefrag(link)
            address = address.partition("?")[0]
            target = (path.parent / unquote(address)).resolve() if address else path
            if not target.exists():
                broken.append(f"{path.name} -> {link}")
            elif (
                anchor and target in pages and unquote(anchor) not in pages[target].ids
            ):
                broken.append(f"{path.name} -> {link}: no such anchor")
    assert len(pages) > 10 and broken == []
