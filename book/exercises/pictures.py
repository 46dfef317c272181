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
    """Return a drawing that fits a phone."""
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(alt)}" '
        f'style="width: {width}px; max-width: 100%; display: block; margin: 0.5rem 0" '
        f'font-size="11" fill="currentColor">{content}</svg>'
    )


def said(text):
    """Return a line of text below or above a drawing."""
    return f'<p style="margin: 0.5rem 0 0">{escape(text)}</p>'


def maps(tables, titles, frames=()):
    """Draw tables of numbers side by side, darker where a number is larger."""
    parts, x = [], 0
    for k, (table, title) in enumerate(zip(tables, titles, strict=True)):
        table = np.abs(np.nan_to_num(np.asarray(table, dtype=float)))
        n, m = table.shape
        levels = np.ceil(9 * table / max(table.max(), 1e-12) - 1e-6).astype(int)
        for level in np.unique(levels):
            cells = "".join(
                f"M{x + j * CELL} {GAP + i * CELL}{SQUARE}"
                for i, j in np.argwhere(levels == level)
            )
            parts.append(f'<path d="{cells}" fill-opacity="{0.06 + level / 9.6:.2f}"/>')
        if k < len(frames) and frames[k]:
            first, count = frames[k]
            parts.append(
                f'<rect x="{x + first * CELL - 2}" y="{GAP - 2}" fill="none" '
                f'width="{count * CELL + 3}" height="{n * CELL + 3}" '
                'stroke="currentColor" stroke-width="2"/>'
            )
        parts.append(f'<text x="{x}" y="{GAP - 8}">{escape(title)}</text>')
        x += max(m * CELL, 6 * len(title)) + GAP
    height = GAP + max(len(table) for table in tables) * CELL + 4
    return svg(round(x), height, "".join(parts), "; ".join(titles))


def curves(losses, what="loss"):
    """Draw how losses change from step to step, by name."""
    top = max(max(values) for values in losses.values())
    parts = [f'<text x="0" y="12">{what} {top:.2f}</text>']
    parts.append(f'<text x="0" y="{HEIGHT}">0</text>')
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
        parts.append(f'<path d="M{WIDTH + 14} {y - 4} h22" {style}/>')
        parts.append(
            f'<text x="{WIDTH + 42}" y="{y}">{escape(name)}: {values[-1]:.2f}</text>'
        )
    longest = max(map(len, losses))
    alt = ", ".join(f"{n} ends at {v[-1]:.2f}" for n, v in losses.items())
    return svg(WIDTH + 80 + 7 * longest, HEIGHT + 4, "".join(parts), f"{what}: {alt}")


def dots(panels, axes, size=170):
    """Draw points and guesses of them side by side, on axes from 0 to 10."""
    parts = []
    for k, (title, points, guesses) in enumerate(panels):
        x = 20 + k * (size + 60)

        def at(p, x=x):
            return x + size * p[0] / 10, GAP + size - size * p[1] / 10

        parts.append(f'<text x="{x}" y="{GAP - 10}">{escape(title)}</text>')
        parts.append(
            f'<path d="M{x} {GAP} v{size} h{size}" fill="none" stroke="currentColor"/>'
            f'<text x="{x}" y="{GAP + size + 14}">{axes[0]} →</text>'
            f'<text transform="translate({x - 6} {GAP + size}) rotate(-90)">'
            f"{axes[1]} →</text>"
        )
        for point, guess in zip(points, guesses, strict=True):
            (a, b), (c, d) = at(point), at(guess)
            parts.append(
                f'<path d="M{a:.0f} {b:.0f}L{c:.0f} {d:.0f}" stroke="currentColor" '
                f'stroke-opacity="0.3"/><circle cx="{a:.0f}" cy="{b:.0f}" r="2.5"/>'
                f'<circle cx="{c:.0f}" cy="{d:.0f}" r="4" fill="none" '
                'stroke="currentColor"/>'
            )
    alt = "; ".join(title for title, *_ in panels)
    return svg(len(panels) * (size + 60), GAP + size + 20, "".join(parts), alt)
