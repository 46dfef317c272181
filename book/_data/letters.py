"""A causal language model for the members of chapter 12: see __main__.py.

It guesses each letter of a novel from the letters before it, and is judged in two ways:
on whole windows, as in training, and as it is used, where the later letters do not
exist yet. About six minutes on one core.
"""

import math
import re

import torch
from torch import nn

from _data.training import FOLDER, Encoder, trained
from _data.wrong_attention import MEMBERS, FromTheZoo
from mha import zoo

NOVEL = FOLDER / "alice.txt"
SEEDS = range(5)
ALPHABET = " abcdefghijklmnopqrstuvwxyz.,"
# 24 letters and heads of width 8, so that √n, √d_k and √d_model are three numbers
N, D_MODEL, N_HEADS, N_LAYERS = 24, 32, 4, 2
STEPS, BATCH, TEST = 700, 32, 400


def letters():
    """Return the novel as numbers: nine chapters to train on, three to judge."""
    chapters = re.split(r"CHAPTER [IVX]+\n", NOVEL.read_text(encoding="utf-8"))[1:]
    known, fresh = "".join(chapters[:9]), "".join(chapters[9:])
    return tuple(
        torch.tensor(
            [ALPHABET.index(c) for c in re.sub(r"[^a-z.,]+", " ", text.lower())]
        )
        for text in (known, fresh)
    )


class Model(nn.Module):
    """Guess the letter that follows each place of a window."""

    def __init__(self, member):
        super().__init__()
        self.embed = nn.Embedding(len(ALPHABET), D_MODEL)
        self.places = nn.Parameter(torch.randn(N, D_MODEL) / 2)
        self.encoder = Encoder(
            N_LAYERS, D_MODEL, N_HEADS, 4 * D_MODEL, norm_first=True, final_norm=True
        )
        for layer in self.encoder.layers:
            layer.attention = FromTheZoo(member, D_MODEL, N_HEADS)
        self.guess = nn.Linear(D_MODEL, len(ALPHABET))

    def forward(self, x):
        X = self.embed(x) + self.places[: x.shape[1]]
        return self.guess(self.encoder(X, is_causal=True))


def windows(text, count, rng=None):
    """Return windows of N letters, and for each place the letter that follows."""
    starts = torch.randint(len(text) - N, (count, 1), generator=rng)
    found = text[starts + torch.arange(N + 1)]
    return found[:, :-1], found[:, 1:]


def loss_on(model, x, y):
    """Return the cross-entropy of the letters that follow."""
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


def train(member, seed, text, steps=STEPS):
    """Return a model trained on random windows; the rate falls in the second half."""
    torch.manual_seed(seed)
    model = Model(member)
    adam = torch.optim.Adam(model.parameters(), 3e-3, fused=True)
    fall = torch.optim.lr_scheduler.LambdaLR(
        adam, lambda s: min(1, 2 * (1 - s / steps))
    )
    batches = (windows(text, BATCH) for _ in range(steps))
    return trained(model, adam, (loss_on(model, x, y) for x, y in batches), fall)


@torch.no_grad()
def judge(model, text):
    """Return bits per letter on whole windows, letter by letter, and repaired."""
    x, y = windows(text, TEST, torch.Generator().manual_seed(99))
    found = {"whole windows": loss_on(model, x, y)}
    found["letter by letter"] = loss_on(one_by_one(model), x, y)
    for layer in model.encoder.layers:
        layer.attention.member = zoo.right
    found["repaired"] = loss_on(model, x, y)
    return {name: round(nats.item() / math.log(2), 4) for name, nats in found.items()}


def one_by_one(model):
    """Return a model that guesses each letter before the later ones exist."""

    def guess(x):
        return torch.stack([model(x[:, : k + 1])[:, -1] for k in range(N)], 1)

    return guess


def results():
    """Yield {way to judge: {member: bits per letter of each seed}}."""
    known, fresh = letters()
    table = {}
    for member in MEMBERS:
        for seed in SEEDS:
            found = judge(train(member, seed, known), fresh)
            for name, value in found.items():
                table.setdefault(name, {}).setdefault(member.name, []).append(value)
    yield "trained", table
