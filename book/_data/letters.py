"""A causal language model for the members of chapter 12: python book/_data/letters.py

It guesses each letter of a novel from the letters before it, and is judged in two ways:
on whole windows, as in training, and as it is used, where the later letters do not
exist yet. About six minutes on one core.
"""

import json
import math
import re
import sys
from pathlib import Path

import torch
from torch import nn

from mha import zoo

sys.path.append(str(Path(__file__).parent))
import wrong_attention
from wrong_attention import Encoder, FromTheZoo

STORE = Path(__file__).with_suffix(".json")
NOVEL = Path(__file__).with_name("alice.txt")
SEEDS = range(5)
ALPHABET = " abcdefghijklmnopqrstuvwxyz.,"
# 24 letters and heads of width 8, so that √n, √d_k and √d_model are three numbers
N, D_MODEL, N_HEADS, N_LAYERS = 24, 32, 4, 2
STEPS, BATCH, TEST = 700, 32, 400
SHORT = 100  # steps of a second table, which a test trains again


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
        self.use(member)
        self.guess = nn.Linear(D_MODEL, len(ALPHABET))

    def use(self, member):
        """Start the attention of each layer anew, with the code of `member`."""
        for layer in self.encoder.layers:
            layer.attention = FromTheZoo(member, D_MODEL, N_HEADS)

    def repair(self):
        """Keep the weights and give each layer correct code."""
        for layer in self.encoder.layers:
            layer.attention.member = zoo.right

    def forward(self, x):
        X = self.embed(x) + self.places[: x.shape[1]]
        return self.guess(self.encoder(X, is_causal=True))


def windows(text, count, rng=None):
    """Return windows of N letters, and for each place the letter that follows."""
    starts = torch.randint(len(text) - N, (count, 1), generator=rng)
    found = text[starts + torch.arange(N + 1)]
    return found[:, :-1], found[:, 1:]


def bits(logits, y):
    """Return the cross-entropy in bits per letter."""
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
    return loss.item() / math.log(2)


def train(member, seed, text, steps=STEPS):
    """Return a model trained on random windows; the rate falls in the second half."""
    torch.manual_seed(seed)
    model = Model(member)
    adam = torch.optim.Adam(model.parameters(), 3e-3)
    fall = torch.optim.lr_scheduler.LambdaLR(
        adam, lambda s: min(1, 2 * (1 - s / steps))
    )
    for _ in range(steps):
        x, y = windows(text, BATCH)
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        fall.step()
    return model


@torch.no_grad()
def judge(model, text):
    """Return bits per letter on whole windows, letter by letter, and repaired."""
    x, y = windows(text, TEST, torch.Generator().manual_seed(99))
    one_by_one = [model(x[:, : k + 1])[:, -1] for k in range(N)]
    found = {"whole windows": bits(model(x), y)}
    found["letter by letter"] = bits(torch.stack(one_by_one, 1), y)
    model.repair()
    found["repaired"] = bits(model(x), y)
    return {name: round(value, 4) for name, value in found.items()}


def run(members, steps):
    """Return {way to judge: {member: bits per letter of each seed}}."""
    known, fresh = letters()
    table = {}
    for member in members:
        for seed in SEEDS:
            found = judge(train(member, seed, known, steps), fresh)
            for name, value in found.items():
                table.setdefault(name, {}).setdefault(member.name, []).append(value)
        print(steps, member.name, [table[name][member.name] for name in table])
    return table


def text_of(tables):
    """Return the tables as they are stored, one row of seeds a line."""
    text = json.dumps(tables, indent=1)
    return re.sub(r"\[[^]]*\]", lambda row: " ".join(row[0].split()), text) + "\n"


def main():
    """Train everything and write the tables."""
    torch.set_num_threads(1)  # the order of sums, and so the last digit, is fixed
    two = zoo.right, zoo.softmax_over_queries
    tables = {"trained": run(wrong_attention.MEMBERS, STEPS), "short": run(two, SHORT)}
    STORE.write_text(text_of(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
