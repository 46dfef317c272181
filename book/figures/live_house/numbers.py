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


def numbers(part: str = "whole") -> dict[str, Array]:
    """Return every matrix of a part; those of attention have an axis of heads.

    >>> numbers()["S"][0, IT]
    array([5., 0., 3., 4.])
    """
    plan = DATA["parts"][part]
    given = GIVEN | {k: np.array(M, float) for k, M in plan.get("input", {}).items()}
    W = {name: mha.split_heads(given[name], HEADS) for name in ("W_Q", "W_K", "W_V")}
    Q, K, V = (
        mha.split_heads(mha.linear(X, given[f"W_{name}"]), HEADS) for name in "QKV"
    )
    scale = 1 / np.sqrt(Q.shape[-1]) if plan.get("scale", True) else 1.0
    H, A = mha.scaled_dot_product_attention(Q, K, V, scale=scale, return_weights=True)
    S = mha.dot_product_scores(Q, K)
    T, C, W_O = S * scale, mha.merge_heads(H), given["W_O"]
    D1, D2 = (mha.linear(H[r], W_O[2 * r : 2 * r + 2]) for r in range(HEADS))
    Y = mha.linear(C, W_O)
    Z = mha.layer_norm(X + Y)
    U = np.maximum(Z @ given["W_1"], 0)
    F = U @ given["W_2"]
    return given | W | {
        "Q": Q, "K": K, "V": V, "Q2": Q, "Kt": K.swapaxes(-1, -2), "V2": V,
        "S": S, "T": T, "mask": np.ones(T.shape[-2:]), "M": T, "A": A, "H": H, "C": C,
        "D1": D1, "D2": D2, "Y": Y, "Z": Z, "U": U, "F": F, "N": mha.layer_norm(Z + F),
    }  # fmt: skip


def matrices(part: str) -> dict[str, dict[str, Any]]:
    """Return what is known of each matrix; a part may say some of it otherwise."""
    own = DATA["parts"][part].get("matrices", {})
    return {name: spec | own.get(name, {}) for name, spec in DATA["matrices"].items()}


def digits(M: Array, wide: float) -> int:
    """Return how many decimals a matrix has room for; whole numbers get none."""
    parts = M[abs(M - M.round()) > 1e-9]
    needs = 32 if (parts < -0.99).any() else 25 if (parts > 0.99).any() else 0
    return 2 if wide >= needs else 1


def short(x: float, digits: int = 2, weight: bool = False) -> str:
    """Return a number as a cell has room for it; a small weight is not called 0.

    >>> [short(x) for x in (2.0, 0.566, -1.55, 0.001, 1.125)]
    ['2', '.57', '−1.55', '0', '1.13']
    >>> short(0.004, weight=True), short(0.0, weight=True)
    ('<.01', '0')
    """
    text = f"{abs(x) + 1e-9:.{digits}f}"  # so that all that is 9/8 becomes 1.13
    if float(text) == 0:
        return "<.01" if weight and x > 0 else "0"
    if abs(x - round(x)) < 1e-9:
        text = f"{abs(x):.0f}"
    return ("−" if x < 0 else "") + text.removeprefix("0")
