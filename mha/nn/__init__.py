"""The same steps as PyTorch layers, ready to train.

Names, arguments and the meaning of a mask are those of the NumPy functions: True means
*may attend*.
"""

from mha._extras import needs

with needs("mha.nn", "torch"):
    from mha.nn._torch_weights import from_torch, to_torch
    from mha.nn.attention import MultiHeadAttention, scaled_dot_product_attention
    from mha.nn.encoder import Encoder, EncoderLayer

__all__ = [
    "Encoder", "EncoderLayer", "MultiHeadAttention", "from_torch",
    "scaled_dot_product_attention", "to_torch",
]  # fmt: skip
