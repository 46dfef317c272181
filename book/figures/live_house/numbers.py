"""The numbers that the house starts with, and what `mha` makes of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np

import mha

Array = np.ndarray[Any, Any]
DATA = json.loads(Path(__file__).with_name("house.json").read_text("utf-8"))
WORDS, FEATURES = tuple(DATA["words"]), tuple(DATA["features"])
IT = DATA["follow"]  # the word to follow
GIVEN = {name: np.array(M, dtype=float) for name, M in DATA["input"].items()}
X, WEIGHTS = GIVEN["X"], {name: M for name, M in GIVEN.items() if name != "X"}
HEADS = 2


def numbers() -> dict[str, Array]:
    """Return every matrix of the house; those of attention have an axis of heads.

    >>> numbers()["S"][0, IT]
    array([5., 0., 3., 4.])
    """
    W = {name: mha.split_heads(WEIGHTS[name], HEADS) for name in ("W_Q", "W_K", "W_V")}
    Q, K, V = (
        mha.split_heads(mha.linear(X, WEIGHTS[f"W_{name}"]), HEADS) for name in "QKV"
    )
    H, A = mha.scaled_dot_product_attention(Q, K, V, return_weights=True)
    S = mha.dot_product_scores(Q, K)
    T = S / np.sqrt(Q.shape[-1])
    C = mha.merge_heads(H)
    Y = mha.linear(C, WEIGHTS["W_O"])
    Z = mha.layer_norm(X + Y)
    U = np.maximum(Z @ WEIGHTS["W_1"], 0)
    F = U @ WEIGHTS["W_2"]
    return GIVEN | W | {
        "Q": Q, "K": K, "V": V, "Kt": K.swapaxes(-1, -2), "V2": V, "S": S, "T": T,
        "mask": np.ones(T.shape[-2:]), "M": T, "A": A, "H": H, "C": C, "Y": Y,
        "Z": Z, "U": U, "F": F, "N": mha.layer_norm(Z + F),
    }  # fmt: skip


def short(x: float, digits: int = 2) -> str:
    """Return a number as a cell has room for it.

    >>> [short(x) for x in (2.0, 0.566, -1.55, 0.001)]
    ['2', '.57', '−1.55', '0']
    """
    text = f"{abs(x):.{digits}f}"
    if float(text) == 0:
        return "0"
    if abs(x - round(x)) < 1e-9:
        text = f"{abs(x):.0f}"
    return ("−" if x < 0 else "") + text.removeprefix("0")
