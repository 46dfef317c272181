"""Sphinx extension: whoever publishes the book gets links to their own repository.

The address of the pages, and the repository and branch that they come from, stand in
the environment and nowhere in this tree:

    BOOK_ADDRESS     https://somebody.example/book/
    BOOK_REPOSITORY  https://github.com/somebody/book
    BOOK_BRANCH      main

Without them the book builds as well, without canonical addresses, a map of the site,
and links to edit or to launch a page.
"""

import os
from urllib.parse import urlsplit

COLAB = "https://colab.research.google.com"
BINDER = "https://mybinder.org"
COPIES = "colab"  # the branch with the notebooks that install what they need


def addresses(environ):
    """Return address, repository and branch; the address ends in a slash."""
    address = environ.get("BOOK_ADDRESS", "").rstrip("/")
    repository = environ.get("BOOK_REPOSITORY", "").rstrip("/").removesuffix(".git")
    branch = environ.get("BOOK_BRANCH") or "main"
    for name, url in (("BOOK_ADDRESS", address), ("BOOK_REPOSITORY", repository)):
        if url and not url.startswith(("https://", "http://")):
            raise ValueError(f"{name} must start with https://, got {url!r}")
    return address and address + "/", repository, branch


def theme_options(repository, branch):
    """Return what the theme needs to draw its links to a repository."""
    options = {
        "repository_url": repository,
        "repository_branch": branch,
        "use_repository_button": True,
        "use_edit_page_button": True,
        "use_issues_button": True,
    }
    if repository.startswith("https://github.com/"):  # the two know no other host
        options["launch_buttons"] = {"binderhub_url": BINDER, "colab_url": COLAB}
    return options


def fill_in(app, config):
    """Give Sphinx and its theme the addresses."""
    address, repository, branch = addresses(os.environ)
    config.html_baseurl = config.ogp_site_url = address
    config.notfound_urls_prefix = urlsplit(address).path or "/"
    if repository:
        config.html_theme_options |= theme_options(repository, branch)


def point_at_copies(app, pagename, templatename, context, doctree):
    """Send Colab to the copies of the notebooks that install the package first."""
    branch = addresses(os.environ)[2]
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if button.get("url", "").startswith(COLAB):
                old, new = f"/blob/{branch}/", f"/blob/{COPIES}/"
                button["url"] = button["url"].replace(old, new, 1)


def setup(app):
    """Register with Sphinx."""
    if addresses(os.environ)[0]:
        app.setup_extension("sphinx_sitemap")
        app.config.sitemap_url_scheme = "{link}"
    app.connect("config-inited", fill_in, priority=100)
    app.connect("html-page-context", point_at_copies, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
