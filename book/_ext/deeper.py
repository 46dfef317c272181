"""Sphinx extension: sections that a first reading may leave closed.

A section with a title that begins with "Deeper: " shows its title and its first
paragraph, which says what it answers and for whom. The rest is folded until a reader
asks for it. A link or a search that leads into the fold opens it (folds.js), and paper
shows everything.
"""

from docutils import nodes
from minutes import exact_minutes, in_fives
from predict import pass_through
from sphinx.transforms import SphinxTransform

MARK = "Deeper: "


class Deeper(nodes.General, nodes.Element):
    """The fold with the rest of a section. Its `minutes` say what reading it takes."""


def is_deeper(node):
    """Return whether a node is a section that may stay closed."""
    return isinstance(node, nodes.section) and node[0].astext().startswith(MARK)


def fold(section):
    """Fold all that follows the first paragraph of a section."""
    start = section.first_child_matching_class(nodes.paragraph) + 1
    if not (rest := section.children[start:]):
        return
    del section[start:]
    inside = Deeper(classes=["deeper"])
    inside += rest
    inside["minutes"] = in_fives(exact_minutes(inside))
    section += inside


class FoldDeeper(SphinxTransform):
    """Fold these sections when the answers in them have been folded."""

    default_priority = 865

    def apply(self, **kwargs):
        """Fold each section that has more than its first paragraph."""
        for section in list(self.document.findall(is_deeper)):
            fold(section)


def visit_deeper(translator, node):
    """Open the fold."""
    takes = f"Read this section: about {node['minutes']} minutes"
    translator.body.append(
        f'<details class="reveal deeper"><summary>{takes}</summary>\n'
    )


def depart_deeper(translator, node):
    """Close the fold."""
    translator.body.append("</details>\n")


def setup(app):
    """Register with Sphinx."""
    plain = dict.fromkeys(("latex", "text"), (pass_through, pass_through))
    app.add_node(Deeper, html=(visit_deeper, depart_deeper), **plain)
    app.add_transform(FoldDeeper)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
