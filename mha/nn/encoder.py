"""The encoder in PyTorch (chapters encoder_layer and encoder)."""

from typing import TYPE_CHECKING, Any, Literal, cast, overload

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mha._doors import Array, as_activation, as_count, as_eps
from mha.nn.attention import (
    Device,
    Mask,
    MultiHeadAttention,
    as_ndarray,
    as_probability,
    check_tensor,
)

ACTIVATIONS = {"relu": torch.relu, "gelu": F.gelu}


class EncoderLayer(nn.Module):
    """Let the tokens look at each other, then let each think alone, and train both.

    Equation: Z = LN(X + MultiHead(X)), Y = LN(Z + FFN(Z)); with `norm_first`
    Z = X + MultiHead(LN(X)), Y = Z + FFN(LN(Z))  (chapter encoder_layer)

    The weights start as those of `torch.nn.TransformerEncoderLayer`, see
    `reset_parameters`.

    Parameters
    ----------
    d_model : int
        Width of the tokens.
    n_heads : int
        Must divide d_model.
    d_ff : int
        Width of the hidden layer in the feed-forward part.
    dropout : float, default 0.0
        In train mode, the probability with which a number becomes 0, in four places:
        the weights of attention, the output of either part before it is added (as in
        the paper), and the hidden layer of feed-forward (as in PyTorch's layer; the
        paper has none there). The paper also drops from the sum of embeddings and
        positions; that is in front of this layer and left to you.
    activation : {"relu", "gelu"}, default "relu"
        The bend in the feed-forward part; "gelu" is the exact one.
    norm_first : bool, default False
        Normalise what goes *into* each part (pre-norm) instead of the sum behind it
        (post-norm, as in the paper).
    eps : float, default 1e-5
        Is added to the variance in both norms.
    bias : bool, default True
        Give all projections and both norms a bias.
    device, dtype : optional
        Where and how the parameters are stored, as for every layer of PyTorch.

    Attributes
    ----------
    attention : MultiHeadAttention
        The part in which tokens meet.
    W_1, W_2 : torch.nn.Linear
        The way of feed-forward out to d_ff, and the way back.
    norm_1, norm_2 : torch.nn.LayerNorm
        The norms of attention and of feed-forward.

    Raises
    ------
    ValueError
        If `eps` is negative or `activation` not known, and as in `MultiHeadAttention`.
    TypeError
        If a count is not an integer, or `dropout` or `eps` not a number.

    Examples
    --------
    Attention has 4 · 8 · 8 weights, feed-forward 2 · 8 · 32 and the norms 2 · 8.

    >>> layer = EncoderLayer(8, n_heads=2, d_ff=32, bias=False)
    >>> sum(p.numel() for p in layer.parameters()) == 256 + 512 + 16
    True
    """

    def __init__(
        self, d_model: int, n_heads: int, d_ff: int, *, dropout: float = 0.0,
        activation: Literal["relu", "gelu"] = "relu", norm_first: bool = False,
        eps: float = 1e-5, bias: bool = True, device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.d_model, self.d_ff = as_count("d_model", d_model), as_count("d_ff", d_ff)
        self.dropout = as_probability("dropout", dropout)
        self.activation = as_activation(activation)
        self.norm_first, self.eps = bool(norm_first), as_eps(eps)
        kind: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.attention = MultiHeadAttention(d_model, n_heads, dropout=dropout, **kind)
        self.W_1 = nn.Linear(d_model, d_ff, **kind)
        self.W_2 = nn.Linear(d_ff, d_model, **kind)
        self.norm_1 = nn.LayerNorm(d_model, eps=self.eps, **kind)
        self.norm_2 = nn.LayerNorm(d_model, eps=self.eps, **kind)

    def reset_parameters(self) -> None:
        """Draw new weights, as `torch.nn.TransformerEncoderLayer` draws its own.

        Attention starts as `MultiHeadAttention.reset_parameters` says, W_1 and W_2 with
        the default of `torch.nn.Linear` (weights and biases within ±1/√(columns in)),
        the norms with gain 1 and bias 0.
        """
        for part in (self.attention, self.W_1, self.W_2, self.norm_1, self.norm_2):
            part.reset_parameters()

    @overload
    def forward(
        self, X: Tensor, mask: Mask = ..., *, is_causal: bool = ...,
        return_weights: Literal[False] = ...,
    ) -> Tensor: ...  # fmt: skip
    @overload
    def forward(
        self, X: Tensor, mask: Mask = ..., *, is_causal: bool = ...,
        return_weights: Literal[True],
    ) -> tuple[Tensor, Tensor]: ...  # fmt: skip
    @overload
    def forward(
        self, X: Tensor, mask: Mask = ..., *, is_causal: bool = ...,
        return_weights: bool,
    ) -> Tensor | tuple[Tensor, Tensor]: ...  # fmt: skip
    def forward(
        self, X: Tensor, mask: Mask = None, *, is_causal: bool = False,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
        """Return the tokens after one layer.

        Parameters
        ----------
        X : Tensor of shape (..., n, d_model)
            The tokens.
        mask : Tensor or ndarray, optional
            Broadcasts to (..., n_heads, n, n); as in `MultiHeadAttention.forward`.
        is_causal, return_weights : bool, default False
            As in `MultiHeadAttention.forward`.

        Returns
        -------
        Y : Tensor of shape (..., n, d_model)
            Finite, with finite gradients, even where all keys of a token are masked.
        A : Tensor of shape (..., n_heads, n, n)
            Only with `return_weights`, as in `MultiHeadAttention.forward`.

        Raises
        ------
        ValueError, TypeError
            For the reasons of `MultiHeadAttention.forward`.
        """
        check_tensor("X", X, self.d_model)
        answer: Any = self.attention(
            self.norm_1(X) if self.norm_first else X,
            mask=mask, is_causal=is_causal, return_weights=return_weights,
        )  # fmt: skip
        M = self._drop(answer[0] if return_weights else answer)
        if self.norm_first:
            Z = X + M
            Y = Z + self._feed_forward(self.norm_2(Z))
        else:
            Z = self.norm_1(X + M)
            Y = self.norm_2(Z + self._feed_forward(Z))
        return (Y, answer[1]) if return_weights else Y

    if TYPE_CHECKING:
        __call__ = forward

    def numpy_weights(self) -> dict[str, Array]:
        """Return the parameters as the dict that `mha.encoder_layer` takes.

        Equation: W_1 = ``W_1.weight.T``, gain_1 = ``norm_1.weight``, and so on
        (chapter encoder_layer)

        Returns
        -------
        weights : dict of ndarray
            The names of the table in `mha.encoder_layer`; without bias no name begins
            with ``b``. Copies: training on does not change them. `activation`,
            `norm_first` and `eps` are no weights, so pass them too.

        Examples
        --------
        >>> import mha
        >>> layer, X = EncoderLayer(6, 2, 12, norm_first=True), torch.rand(3, 6)
        >>> Y = mha.encoder_layer(X.numpy(), layer.numpy_weights(), 2, norm_first=True)
        >>> torch.allclose(layer(X), torch.from_numpy(Y), atol=1e-6)
        True
        """
        weights = self.attention.numpy_weights()
        for i, W, norm in (1, self.W_1, self.norm_1), (2, self.W_2, self.norm_2):
            named = {f"W_{i}": W.weight, f"b_{i}": W.bias}
            named |= {f"gain_{i}": norm.weight, f"bias_{i}": norm.bias}
            weights |= {k: as_ndarray(p) for k, p in named.items() if p is not None}
        return weights

    def extra_repr(self) -> str:
        """Return the line that ``print(layer)`` shows above the parts."""
        shown = "activation", "norm_first", "dropout"
        return ", ".join(f"{name}={getattr(self, name)}" for name in shown)

    def _feed_forward(self, X: Tensor) -> Tensor:
        hidden = ACTIVATIONS[self.activation](self.W_1(X))
        return self._drop(self.W_2(self._drop(hidden)))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


class Encoder(nn.Module):
    """Send the tokens through one encoder layer after the other.

    Equation: X_{l+1} = EncoderLayer_l(X_l), Y = X_L or LN(X_L)  (chapter encoder)

    Parameters
    ----------
    n_layers : int
        Number of layers. Each starts with its own random weights, while
        `torch.nn.TransformerEncoder` starts with copies of one layer.
    d_model, n_heads, d_ff : int
        The sizes of each layer, see `EncoderLayer`.
    dropout, activation, norm_first, eps, bias : optional
        The same for each layer, see `EncoderLayer`.
    final_norm : bool, default False
        Normalise once more at the end, as pre-norm stacks do.
    device, dtype : optional
        Where and how the parameters are stored, as for every layer of PyTorch.

    Attributes
    ----------
    layers : torch.nn.ModuleList
        One `EncoderLayer` after the other.
    final_norm : torch.nn.LayerNorm or None
        The norm at the end, if there is one.

    Raises
    ------
    ValueError, TypeError
        If `n_layers` is no integer from 1, or for the reasons of `EncoderLayer`.

    Examples
    --------
    >>> model = Encoder(5, d_model=6, n_heads=2, d_ff=12, final_norm=True)
    >>> Y, A = model(torch.rand(3, 6), return_weights=True)
    >>> Y.shape, len(A), A[0].shape
    (torch.Size([3, 6]), 5, torch.Size([2, 3, 3]))
    """

    def __init__(
        self, n_layers: int, d_model: int, n_heads: int, d_ff: int, *,
        dropout: float = 0.0, activation: Literal["relu", "gelu"] = "relu",
        norm_first: bool = False, eps: float = 1e-5, bias: bool = True,
        final_norm: bool = False, device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        kind: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.layers = nn.ModuleList(
            EncoderLayer(
                d_model, n_heads, d_ff, dropout=dropout, activation=activation,
                norm_first=norm_first, eps=eps, **kind,
            )
            for _ in range(as_count("n_layers", n_layers))
        )  # fmt: skip
        norm = nn.LayerNorm(d_model, eps=eps, **kind) if final_norm else None
        self.final_norm = norm

    def reset_parameters(self) -> None:
        """Draw new weights for each layer, see `EncoderLayer.reset_parameters`.

        The final norm, if there is one, gets gain 1 and bias 0.
        """
        for layer in cast(list[EncoderLayer], self.layers):
            layer.reset_parameters()
        if self.final_norm is not None:
            self.final_norm.reset_parameters()

    @overload
    def forward(
        self, X: Tensor, mask: Mask = ..., *, is_causal: bool = ...,
        return_weights: Literal[False] = ...,
    ) -> Tensor: ...  # fmt: skip
    @overload
    def forward(
        self, X: Tensor, mask: Mask = ..., *, is_causal: bool = ...,
        return_weights: Literal[True],
    ) -> tuple[Tensor, list[Tensor]]: ...  # fmt: skip
    @overload
    def forward(
        self, X: Tensor, mask: Mask = ..., *, is_causal: bool = ...,
        return_weights: bool,
    ) -> Tensor | tuple[Tensor, list[Tensor]]: ...  # fmt: skip
    def forward(
        self, X: Tensor, mask: Mask = None, *, is_causal: bool = False,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, list[Tensor]]:  # fmt: skip
        """Return the tokens after the last layer.

        Parameters
        ----------
        X : Tensor of shape (..., n, d_model)
            The tokens. The encoder adds no positions to them.
        mask, is_causal, return_weights : optional
            As in `EncoderLayer.forward`, the same for every layer.

        Returns
        -------
        Y : Tensor of shape (..., n, d_model)
            Finite, with finite gradients, even where all keys of a token are masked.
        A : list of Tensor, each of shape (..., n_heads, n, n)
            Only with `return_weights`. One entry for each layer, the first layer first.

        Raises
        ------
        ValueError, TypeError
            For the reasons of `MultiHeadAttention.forward`.
        """
        maps = []
        for layer in self.layers:
            X = layer(X, mask=mask, is_causal=is_causal, return_weights=return_weights)
            if return_weights:
                X, A = X
                maps.append(A)
        Y = X if self.final_norm is None else self.final_norm(X)
        return (Y, maps) if return_weights else Y

    if TYPE_CHECKING:
        __call__ = forward

    def numpy_weights(self) -> dict[str, Any]:
        """Return the parameters as keyword arguments of `mha.encoder`.

        Equation: W_1 = ``W_1.weight.T``, gain_1 = ``norm_1.weight``, and so on
        (chapter encoder)

        Returns
        -------
        weights : dict
            ``layers``, a list of dicts as `mha.encoder_layer` takes them, and
            ``final_norm``, a pair (gain, bias) or None. Copies, without `activation`,
            `norm_first` and `eps`, as in `EncoderLayer.numpy_weights`.

        Examples
        --------
        >>> import mha
        >>> model, X = Encoder(2, 6, 2, 12, final_norm=True), torch.rand(3, 6)
        >>> Y = mha.encoder(X.numpy(), n_heads=2, **model.numpy_weights())
        >>> torch.allclose(model(X), torch.from_numpy(Y), atol=1e-6)
        True
        """
        layers = cast(list[EncoderLayer], self.layers)
        pair = None
        if self.final_norm is not None:
            parts = self.final_norm.weight, self.final_norm.bias
            pair = tuple(None if p is None else as_ndarray(p) for p in parts)
        weights = [layer.numpy_weights() for layer in layers]
        return {"layers": weights, "final_norm": pair}
