"""Step 8: the same steps, ready to train. Chapters 9, 11 and 12. Needs PyTorch.

Names, arguments and the meaning of a mask are those of the NumPy functions: True means
*may look*.
"""

from mha.nn._torch_weights import from_torch, to_torch
from mha.nn.attention import MultiHeadAttention, scaled_dot_product_attention
from mha.nn.encoder import Encoder, EncoderLayer

__all__ = [
    "Encoder",
    "EncoderLayer",
    "MultiHeadAttention",
    "from_torch",
    "scaled_dot_product_attention",
    "to_torch",
]
