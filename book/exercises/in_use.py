"""What a learner's functions do in use: stored models that they run, and drawings."""

import base64
import functools
import json
import time
from pathlib import Path

import numpy as np

from exercises import pictures
from mha import encoder, layer_norm, softmax
from mha.positions import sinusoidal_positional_encoding

BOOK = Path(__file__).parent.parent
PROMPT, LONG = "alice was ", 200


def unpacked(x):
    """Return the arrays of a file that `_data.live_encoder.packed` has made."""
    if isinstance(x, list):
        return [unpacked(part) for part in x]
    if not isinstance(x, dict):
        return x
    if "exact" in x:
        return np.frombuffer(base64.b64decode(x["exact"]), "<f4").astype(float)
    if "whole" in x:
        scales = np.frombuffer(base64.b64decode(x["scales"]), "<f4").astype(float)
        whole = np.frombuffer(base64.b64decode(x["whole"]), np.int8)
        return whole.reshape(len(scales), -1) * scales[:, None]
    return {name: unpacked(part) for name, part in x.items()}


# A word, and the letter that is stressed


@functools.cache
def stress_finder():
    """Return the trained model of chapter 13, as the live encoder has it."""
    path = BOOK / "_static" / "live_encoder" / "right.js"
    text = path.read_text(encoding="utf-8").partition("right = ")[2]
    model = unpacked(json.loads(text.rstrip("; \n")))
    return {**model, "positions": np.array(model["positions"])}


def stressed(scores_of, words):
    """Return the words, each with a capital where `scores_of` scores highest."""
    model, found = stress_finder(), []
    for word in words:
        letters = np.array([ord(c) - 96 for c in word])
        i = int(np.argmax(scores_of(letters, model, model["n_heads"])))
        found.append(word[:i] + word[i].upper() + word[i + 1 :])
    return " ".join(found)


def letters_only(text):
    """Return the words of a text that the model can read."""
    words = text.lower().split() if isinstance(text, str) else map(str.lower, text)
    return [w for w in words if w.isascii() and w.isalpha() and 3 <= len(w) <= 14]


# A text, written character by character


@functools.cache
def writer():
    """Return the small model that has read *Alice*."""
    path = BOOK / "_data" / "writer.json"
    model = unpacked(json.loads(path.read_text(encoding="utf-8")))
    width = model["embed"].shape[1]
    return {**model, "positions": sinusoidal_positional_encoding(256, width)}


def written(guess, length, prompt=PROMPT):
    """Return a text: `guess` takes its characters as integers, and returns scores."""
    letters, draws = writer()["letters"], np.random.default_rng(4).random(length)
    text = [letters.index(letter) for letter in prompt]
    for draw in draws:
        p = softmax(guess(text) / 0.5)
        text.append(int(np.searchsorted(p.cumsum(), draw * p.sum())))
    return "".join(letters[k] for k in text)


def all_at_once(encode=None):
    """Return a guess that sends the whole text through the layers each time.

    `encode` is a learner's ``causal_model(X, layers, n_heads)``.
    """
    model = writer()

    def guess(text):
        X = model["embed"][text] + model["positions"][: len(text)]
        if encode:
            Y = np.asarray(encode(X, model["layers"], model["n_heads"]))
        else:
            Y = encoder(
                X, model["layers"], model["n_heads"], is_causal=True, norm_first=True
            )
        gain, bias = model["final_norm"]
        return layer_norm(Y[-1], gain, bias) @ model["W_guess"] + model["b_guess"]

    return guess


def with_cache(step):
    """Return a guess that takes one step for each new character.

    `step` is a learner's ``decode_step(x, K, V, W_Q, W_K, W_V)`` of one head. It has no
    biases, so a token gets the number 1 at its end, and a matrix its bias as last row.
    """
    model, n_heads = writer(), writer()["n_heads"]
    d_k = model["embed"].shape[1] // n_heads
    heads = [
        [
            [
                np.vstack([w[f"W_{x}"], w[f"b_{x}"]])[:, d_k * h : d_k * (h + 1)]
                for x in "QKV"
            ]
            for h in range(n_heads)
        ]
        for w in model["layers"]
    ]
    empty = np.zeros((0, d_k))
    cache = [[(empty, empty)] * n_heads for _ in model["layers"]]
    read = 0

    def one(letter, place):
        x = model["embed"][letter] + model["positions"][place]
        for w, matrices, kept in zip(model["layers"], heads, cache, strict=True):
            token = np.append(layer_norm(x, w["gain_1"], w["bias_1"]), 1)
            found = []
            for h, three in enumerate(matrices):
                y, *kept[h] = step(token.copy(), *kept[h], *three)
                found.append(np.asarray(y))
            x = x + np.concatenate(found) @ w["W_O"] + w["b_O"]
            hidden = layer_norm(x, w["gain_2"], w["bias_2"]) @ w["W_1"] + w["b_1"]
            x = x + np.maximum(hidden, 0) @ w["W_2"] + w["b_2"]
        return layer_norm(x, *model["final_norm"]) @ model["W_guess"] + model["b_guess"]

    def guess(text):
        nonlocal read
        scores = [one(text[place], place) for place in range(read, len(text))]
        read = len(text)
        return scores[-1]

    return guess


def writing_picture(step):
    """Write a text with a learner's cache and without one, and time both."""
    texts, seconds = [], []
    for guess in (with_cache(step), all_at_once()):
        began = time.perf_counter()
        texts.append(written(guess, LONG))
        seconds.append(time.perf_counter() - began)
    with_it, without = seconds
    same = "the same text" if texts[0] == texts[1] else "another text"
    return "".join(
        [
            pictures.said("A model that has read Alice writes with your cache:"),
            pictures.said(texts[0]),
            pictures.said(
                f"{LONG} characters in {with_it:.2f} s. Without a cache, all tokens "
                f"computed anew for each character: {same} in {without:.2f} s."
            ),
        ]
    )


# Drawings


def looking_back(turn_by):
    """Draw heads whose queries are positions, turned by a learner's matrix."""
    P = sinusoidal_positional_encoding(14, 32)
    steps = 0, -1, -3, 2
    maps = [softmax(2 * P @ np.asarray(turn_by(k, 32)) @ P.T) for k in steps]
    told = (
        "Heads that look k words on, for any k: the queries are P R, the keys P, and "
        "each row shows how a word spreads its attention."
    )
    return pictures.said(told) + pictures.maps(maps, [f"k = {k}" for k in steps])


def deep(wire_layer):
    """Draw how much of a token is left after many layers of a learner's wiring."""
    rng = np.random.default_rng(0)
    start, left = layer_norm(rng.normal(size=(8, 32))), {}
    for name, norm_first in (("post-norm", False), ("pre-norm", True)):
        X, left[name] = start, [1.0]
        draw = np.random.default_rng(1)
        for _ in range(32):
            A = softmax(2 * draw.normal(size=(8, 8)))
            W, U = draw.normal(size=(2, 32, 32)) / 32**0.5
            X = wire_layer(
                X,
                lambda x, A=A, W=W: A @ x @ W,
                lambda x, U=U: 1.4 * np.maximum(x, 0) @ U,
                layer_norm,
                layer_norm,
                norm_first,
            )
            alike = (layer_norm(np.asarray(X)) * start).sum(-1) / 32
            left[name].append(float(alike.mean()))
    told = (
        "32 of your layers, with random weights, on top of each other: the mean cosine "
        "of a token with what it was at first."
    )
    return pictures.said(told) + pictures.curves(left, "cosine")


def offsets(rotate):
    """Draw the scores of equal tokens at different places, rotated by a learner."""
    places, x = np.arange(14), np.ones((14, 32))
    moved = rotate(x, places), rotate(x, places + 100)
    maps = [np.maximum(Q @ Q.T, 0) for Q in map(np.asarray, moved)]
    told = (
        "Scores of fourteen equal tokens after your rotation: they depend on the "
        "offset alone, so they stay when all places move by 100."
    )
    titles = "places 0 to 13", "places 100 to 113"
    return pictures.said(told) + pictures.maps(maps, titles)
