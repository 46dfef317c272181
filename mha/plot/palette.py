"""The colours of the roles, and the ink that can be read on a weight.

A figure on a page asks the page for them, by CSS variables such as ``--mha-query``; the
light theme is what it falls back to.
"""

ROLES = ("query", "key", "value", "weight", "output", "wrong")
LIGHT = {
    "query": "#0B63C5", "key": "#B04E00", "value": "#007C66", "weight": "#25215F",
    "output": "#A0288A", "wrong": "#8A0F2E",
    "amber": "#8F6400", "olive": "#55701A",  # for lines and signs that have no role
    "ink": "#222832", "muted": "#667180", "rest": "#C3C9D1", "paper": "#FFFFFF",
    "on0": "#222832", "on1": "#000000", "on2": "#FFFFFF",
}  # fmt: skip


def paint(role: str) -> str:
    """Return the colour of a role as a page looks it up.

    Examples
    --------
    >>> paint("key")
    'var(--mha-key, #B04E00)'
    """
    return f"var(--mha-{role}, {LIGHT[role]})"


def ink_on(alpha: float) -> str:
    """Return the role of a number on a cell filled with the weight colour this densely.

    The two limits are where black and white have a contrast of 4.5 in both themes.

    Examples
    --------
    >>> [ink_on(weight) for weight in (0, 0.5, 1)]
    ['on0', 'on1', 'on2']
    """
    return "on0" if alpha < 0.475 else "on1" if alpha < 0.635 else "on2"
