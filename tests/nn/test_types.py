"""What a type checker knows of the PyTorch layers: mypy reads it, pytest runs it.

`assert_type` is checked by mypy (see [tool.mypy] in pyproject.toml). When it runs, it
returns its first argument, and the test looks at the real type.
"""

from typing import assert_type

import numpy as np
import torch
from torch import Tensor, nn

from mha.nn import (
    Encoder,
    EncoderLayer,
    MultiHeadAttention,
    from_torch,
    scaled_dot_product_attention,
    to_torch,
)

X = torch.ones(2, 3, 6)


def test_attention_returns_a_tensor_or_a_pair() -> None:
    Y = assert_type(scaled_dot_product_attention(X, X, X), Tensor)
    pair = scaled_dot_product_attention(X, X, X, return_weights=True)
    Y_2, A = assert_type(pair, tuple[Tensor, Tensor])
    assert all(isinstance(x, Tensor) for x in (Y, Y_2, A))


def test_multi_head_attention_returns_a_tensor_or_a_pair() -> None:
    layer = MultiHeadAttention(6, 2)
    Y = assert_type(layer(X), Tensor)
    Y_2, A = assert_type(layer(X, return_weights=True), tuple[Tensor, Tensor])
    mask = np.ones((3, 3), dtype=bool)
    Y_3 = assert_type(layer(X, X, X, mask, is_causal=True), Tensor)
    assert all(isinstance(x, Tensor) for x in (Y, Y_2, Y_3, A))


def test_an_encoder_layer_returns_a_tensor_or_a_pair() -> None:
    layer = EncoderLayer(6, 2, 5)
    Y = assert_type(layer(X), Tensor)
    Y_2, A = assert_type(layer(X, return_weights=True), tuple[Tensor, Tensor])
    assert all(isinstance(x, Tensor) for x in (Y, Y_2, A))


def test_an_encoder_returns_a_tensor_or_a_tensor_and_a_list() -> None:
    model = Encoder(2, 6, 2, 5)
    Y = assert_type(model(X), Tensor)
    Y_2, A = assert_type(model(X, return_weights=True), tuple[Tensor, list[Tensor]])
    assert isinstance(Y, Tensor) and isinstance(Y_2, Tensor)
    assert isinstance(A, list) and all(isinstance(A_l, Tensor) for A_l in A)


def test_a_flag_known_only_at_run_time_gives_either() -> None:
    for flag in (False, True):
        answer = MultiHeadAttention(6, 2)(X, return_weights=flag)
        assert_type(answer, Tensor | tuple[Tensor, Tensor])
        assert isinstance(answer, tuple) == flag


def test_conversions_know_what_they_return() -> None:
    theirs = nn.MultiheadAttention(6, 2)
    ours = assert_type(from_torch(theirs), MultiHeadAttention)
    back = assert_type(to_torch(ours), nn.MultiheadAttention)
    layer = assert_type(to_torch(EncoderLayer(6, 2, 5)), nn.TransformerEncoderLayer)
    model = assert_type(to_torch(Encoder(2, 6, 2, 5)), nn.TransformerEncoder)
    assert type(ours) is MultiHeadAttention and type(back) is nn.MultiheadAttention
    assert type(layer) is nn.TransformerEncoderLayer
    assert type(model) is nn.TransformerEncoder
