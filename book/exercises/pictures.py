"""Drawings that a passed exercise shows: maps, curves and dots, as SVG.

They have the colour of the text beside them, so that they can be read by day and night.
"""

from html import escape

import numpy as np

CELL, GAP = 13, 24  # of maps
SQUARE = "h12v12h-12z"
WIDTH, HEIGHT = 300, 110  # of curves
DASHES = "none", "5 3", "1 3"  # of the first curve, the second, the third


def svg(width, height, content, alt):
    """Return a drawing, at most as wide as the page."""
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(alt)}" '
        f'style="width: {width}px; max-width: 100%; overflow: visible" '
        f'font-size="11" fill="currentColor">{content}</svg>'
    )


def row(parts):
    """Return drawings side by side, and below one another on a phone."""
    style = "display: flex; flex-wrap: wrap; gap: 0.75rem 1.5rem; margin: 0.5rem 0"
    return f'<div style="{style}">{"".join(parts)}</div>'


def said(text):
    """Return a line of text below or above a drawing."""
    return f'<p style="margin: 0.5rem 0 0">{escape(text)}</p>'


def maps(tables, titles, frames=()):
    """Draw tables of numbers side by side, darker where a number is larger."""
    frames = [*frames, *[None] * (len(tables) - len(frames))]
    return row(map(_map, tables, titles, frames))


def _map(table, title, frame):
    table = np.abs(np.nan_to_num(np.asarray(table, dtype=float)))
    n, m = table.shape
    levels = np.ceil(9 * table / max(table.max(), 1e-12) - 1e-6).astype(int)
    parts = [f'<text x="0" y="{GAP - 8}">{escape(title)}</text>']
    for level in np.unique(levels):
        cells = "".join(
            f"M{j * CELL} {GAP + i * CELL}{SQUARE}"
            for i, j in np.argwhere(levels == level)
        )
        parts.append(f'<path d="{cells}" fill-opacity="{0.06 + level / 9.6:.2f}"/>')
    if frame:
        first, count = frame
        parts.append(
            f'<rect x="{first * CELL - 2}" y="{GAP - 2}" width="{count * CELL + 3}" '
            f'height="{n * CELL + 3}" fill="none" stroke="currentColor" '
            'stroke-width="2"/>'
        )
    width = round(max(m * CELL, 6 * len(title)))
    return svg(width, GAP + n * CELL + 4, "".join(parts), title)


def curves(losses, what="loss"):
    """Draw how losses change from step to step, by name."""
    top = max(max(values) for values in losses.values())
    parts = [f'<text x="0" y="12">{what} {top:.2f}</text>']
    parts.append(f'<text x="0" y="{HEIGHT}">0</text>')
    names = []
    for k, (name, values) in enumerate(losses.items()):
        steps = np.linspace(62, WIDTH, len(values))
        heights = HEIGHT - 4 - (HEIGHT - 16) * np.array(values) / max(top, 1e-12)
        points = " ".join(
            f"{a:.1f},{b:.1f}" for a, b in zip(steps, heights, strict=True)
        )
        dash = DASHES[k % len(DASHES)]
        style = f'fill="none" stroke="currentColor" stroke-dasharray="{dash}"'
        parts.append(f'<polyline points="{points}" {style} stroke-width="1.8"/>')
        y = 14 + 16 * k
        names.append(f'<path d="M0 {y - 4} h22" {style}/>')
        names.append(f'<text x="28" y="{y}">{escape(name)}: {values[-1]:.2f}</text>')
    alt = ", ".join(f"{n} ends at {v[-1]:.2f}" for n, v in losses.items())
    width = 66 + 6 * max(map(len, losses))
    legend = svg(width, 16 * len(losses), "".join(names), "the names of the curves")
    return row([svg(WIDTH, HEIGHT + 4, "".join(parts), f"{what}: {alt}"), legend])


def dots(panels, axes, size=170):
    """Draw points and guesses of them side by side, on axes from 0 to 10."""
    parts = []
    for title, points, guesses in panels:

        def at(p):
            return 20 + size * p[0] / 10, GAP + size - size * p[1] / 10

        inside = [
            f'<text x="20" y="{GAP - 10}">{escape(title)}</text>'
            f'<path d="M20 {GAP} v{size} h{size}" fill="none" stroke="currentColor"/>'
            f'<text x="20" y="{GAP + size + 14}">{axes[0]} →</text>'
            f'<text transform="translate(14 {GAP + size}) rotate(-90)">'
            f"{axes[1]} →</text>"
        ]
        for point, guess in zip(points, guesses, strict=True):
            (a, b), (c, d) = at(point), at(guess)
            inside.append(
                f'<path d="M{a:.0f} {b:.0f}L{c:.0f} {d:.0f}" stroke="currentColor" '
                f'stroke-opacity="0.3"/><circle cx="{a:.0f}" cy="{b:.0f}" r="2.5"/>'
                f'<circle cx="{c:.0f}" cy="{d:.0f}" r="4" fill="none" '
                'stroke="currentColor"/>'
            )
        parts.append(svg(size + 36, GAP + size + 20, "".join(inside), title))
    return row(parts)
