"""Maps of weights: each follows the theme of the page and carries alt text."""

from mha._extras import needs

with needs("mha.plot", "plot"):
    from mha.plot.matrices import heatmap, heatmaps
    from mha.plot.picture import Picture

__all__ = ["Picture", "heatmap", "heatmaps"]
