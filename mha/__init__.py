"""mha: multi-head attention, one small step at a time.

The functions here need NumPy only. Their results have the dtype that NumPy gives all
arguments together, lists and integers count as float64, and float16 is summed in
float32. What does not fit raises a ValueError or a TypeError that names the argument,
both values and the rule. A step calls the steps below it under the names that its
module imports, so that ``mock.patch("mha.masks.softmax", mine)`` changes attention, and
``mha.softmax = mine`` does not.

`mha.nn` holds the same steps as PyTorch layers, `mha.laws`
what must be true of any attention, `mha.zoo` the wrong versions.
"""

from mha._source import source
from mha.similarity import cosine_similarity, dot_product_scores
from mha.weighting import softmax
from mha.masks import causal_mask, masked_softmax, padding_mask
from mha.attention import scaled_dot_product_attention
from mha.heads import linear, merge_heads, multi_head_attention, split_heads
from mha.positions import sinusoidal_positional_encoding
from mha.layers import encoder, encoder_layer, feed_forward, layer_norm
from mha.chunked import chunked_attention

__all__ = [
    "causal_mask", "chunked_attention", "cosine_similarity", "dot_product_scores",
    "encoder", "encoder_layer", "feed_forward", "layer_norm", "linear",
    "masked_softmax", "merge_heads", "multi_head_attention", "padding_mask",
    "scaled_dot_product_attention", "sinusoidal_positional_encoding", "softmax",
    "source", "split_heads",
]  # fmt: skip

__version__ = "0.1.0"
