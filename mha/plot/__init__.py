"""Figures of the book: each follows the theme of the page and carries alt text."""

from mha._extras import needs

with needs("mha.plot", "plot"):
    from mha.plot.arrows import vectors
    from mha.plot.charts import bars, histogram, lines, points
    from mha.plot.matrices import heatmap, heatmaps
    from mha.plot.panels import moves
    from mha.plot.picture import Picture
    from mha.plot.tables import marks

__all__ = [
    "Picture", "bars", "heatmap", "heatmaps", "histogram", "lines", "marks",
    "moves", "points", "vectors",
]  # fmt: skip
