"""Sphinx extension: whoever publishes the book gets links to their own repository.

The address of the pages, and the repository and branch that they come from, stand in
the environment and nowhere in this tree:

    BOOK_ADDRESS     https://somebody.example/book/
    BOOK_REPOSITORY  https://github.com/somebody/book
    BOOK_BRANCH      main
    BOOK_DOWNLOADS   yes, if a PDF and an archive of the pages stand beside them

Without them the book builds as well, without canonical addresses, a map of the site,
cards for links, and links to edit, to launch or to download.
"""

import os
import re
import tomllib
from datetime import date
from operator import attrgetter
from pathlib import Path
from urllib.parse import urlsplit

GITHUB = "https://github.com/"
COLAB = "https://colab.research.google.com/github"
BINDER = "https://mybinder.org/v2/gh"
COPIES = "colab"  # the branch with the notebooks that install what they need
PUBLISHED = (
    'The whole book is there <a href="../head-by-head.pdf">as one PDF</a>, and '
    '<a href="../head-by-head.zip">as an archive of these pages</a> to read offline.'
)
UNPUBLISHED = (
    "The README shows the command that prints the whole book as one PDF. These pages "
    "also work offline, from a folder."
)
CARDS = {"image": "book/_static/finding.png", "image_mini": "book/_static/logo.png"}


def addresses(environ):
    """Return address, repository and branch; the address ends in a slash."""
    address = environ.get("BOOK_ADDRESS", "").rstrip("/")
    repository = environ.get("BOOK_REPOSITORY", "").rstrip("/").removesuffix(".git")
    branch = environ.get("BOOK_BRANCH") or "main"
    for name, url in (("BOOK_ADDRESS", address), ("BOOK_REPOSITORY", repository)):
        if url and not url.startswith(("https://", "http://")):
            raise ValueError(f"{name} must start with https://, got {url!r}")
    return address and address + "/", repository, branch


def edition():
    """Return the version of the book, and the day on which it is built.

    >>> edition().partition(",")[0]
    'Version 0.1.0'
    """
    project = Path(__file__).parents[2] / "pyproject.toml"
    version = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]
    today = date.today()
    return f"Version {version}, {today.day} {today:%B %Y}"


def launch(repository, source):
    """Return the name and the address of each place where a notebook can be run."""
    if not repository.startswith(GITHUB):
        return []  # the two know no other host
    name = repository.removeprefix(GITHUB)
    return [
        ("Colab", f"{COLAB}/{name}/blob/{COPIES}/{source}"),
        ("Binder", f"{BINDER}/{name}/{COPIES}?urlpath=lab/tree/{source}"),
    ]


def words(environ=os.environ):
    """Return what the front page says of its address and its repository, if any."""
    address, repository, _ = addresses(environ)
    folder = repository.rpartition("/")[2]
    known = {
        "bib_url": f",\n  url    = {{{address}}}" if address else "",
        "clone": "", "install": "pip install path/to/the/copy",
        "repository": "a copy of the repository that this page was built from",
        "downloads": PUBLISHED if environ.get("BOOK_DOWNLOADS") else UNPUBLISHED,
    }  # fmt: skip
    if repository:
        known |= {
            "clone": f"git clone {repository} && cd {folder}\n",
            "install": f"pip install git+{repository}",
            "repository": f"a copy of [the repository]({repository})",
        }
    return known


def fill_in(app, config):
    """Give Sphinx and its theme the addresses."""
    address, repository, branch = addresses(os.environ)
    config.html_baseurl = config.ogp_site_url = address
    config.notfound_urls_prefix = urlsplit(address).path or "/"
    config.copyright += f". {edition()}"
    # Not in _config.yml, because the theme makes its setting known late.
    config.pygments_dark_style = "github-dark"
    if address:  # a link to a page is shown with a card of its own
        config.ogp_image, config.ogp_social_cards = None, CARDS
    if repository:
        config.html_theme_options |= {
            "source_repository": repository,
            "source_branch": branch,
            "source_directory": "",
        }


def join_styles(app, exception):
    """Write the style sheets as one, for which a page waits once.

    Those of myst-nb are left out: they are for coloured terminals.
    """
    written = hasattr(app.builder, "globalcontext")  # if no page is new, none is
    if app.builder.name != "html" or exception or not written:
        return
    out = Path(app.outdir)
    sheets = sorted(app.builder.globalcontext["css_files"], key=attrgetter("priority"))
    names = [each.filename for each in sheets if "mystnb" not in each.filename]
    text = "".join((out / name).read_text("utf-8") for name in names)
    text = re.sub(r"/\*.*?\*/\s*", "", text, flags=re.DOTALL)
    (out / "_static" / "all.css").write_text(text, "utf-8")


def show(app, pagename, templatename, context, doctree):
    """Tell the template of a page where it can be run."""
    _, repository, _ = addresses(os.environ)
    context["launch"] = launch(repository, context.get("sourcename") or "")


def setup(app):
    """Register with Sphinx."""
    if addresses(os.environ)[0]:
        app.setup_extension("sphinx_sitemap")
        app.config.sitemap_url_scheme = "{link}"
    app.connect("config-inited", fill_in, priority=100)
    app.connect("html-page-context", show)
    app.connect("build-finished", join_styles, priority=900)  # of the theme's, too
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
