"""A harder exam for the members of chapter 12: python book/_data/cards.py

A bag of cards, without positions. A card has a letter and a digit; a question has a
letter, and its answer is the digit of the card with the next letter of the alphabet.
All train on six cards and six questions, and are then asked what training did not ask.
About eight minutes on one core.
"""

import json
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
SEEDS = range(5)
STEPS, LATE = 400, 2000
LETTERS, DIGITS = 32, 10
CARDS, BATCH, TEST = 6, 64, 500
PADDING = 36  # tokens behind each bag, hidden by the mask
PATIENCE = 400  # training steps after which a wide head is given up

SLOW = (  # trained again, to see whether they are late or unable
    zoo.right,
    zoo.merge_without_transpose,
    zoo.split_without_transpose,
    zoo.input_split_before_projection,
    zoo.tied_query_key,
)
WIDE = zoo.right, zoo.no_scale, zoo.scale_after_softmax


class Model(nn.Module):
    """Embed letter and digit, attend once, and guess a digit at each place."""

    def __init__(self, member, d_model=32, n_heads=4):
        super().__init__()
        self.letter = nn.Embedding(LETTERS, d_model)
        self.digit = nn.Embedding(DIGITS + 1, d_model)  # the last one is the "?"
        self.encoder = Encoder(
            1, d_model, n_heads, 4 * d_model, norm_first=True, final_norm=True
        )
        self.encoder.layers[0].attention = FromTheZoo(member, d_model, n_heads)
        self.guess = nn.Linear(d_model, DIGITS)

    def forward(self, letters, digits, mask=None):
        X = self.letter(letters) + self.digit(digits)
        return self.guess(self.encoder(X, mask))


def deal(batch, cards=CARDS, questions=None, rng=None):
    """Return letters, digits and answers of shuffled bags; a card has the answer -1."""
    known = torch.rand(batch, LETTERS, generator=rng).argsort(1)[:, :cards]
    digits = torch.randint(DIGITS, known.shape, generator=rng)
    asked = torch.rand(known.shape, generator=rng).argsort(1)[:, :questions]
    before = (known.gather(1, asked) - 1) % LETTERS
    letters = torch.cat([known, before], 1)
    shown = torch.cat([digits, torch.full_like(before, DIGITS)], 1)
    answers = torch.cat([torch.full_like(known, -1), digits.gather(1, asked)], 1)
    order = torch.rand(letters.shape, generator=rng).argsort(1)
    return tuple(x.gather(1, order) for x in (letters, shown, answers))


def pad(letters, shown, answers):
    """Return the same bags with padding behind them, and the mask that hides it."""
    n = letters.shape[1]
    fills = 0, DIGITS, -1
    padded = (
        nn.functional.pad(x, (0, PADDING), value=fill)
        for x, fill in zip((letters, shown, answers), fills, strict=True)
    )
    return *padded, torch.arange(n + PADDING) < n


CONDITIONS = {
    "as trained": lambda rng: deal(TEST, rng=rng),
    "padded": lambda rng: pad(*deal(TEST, rng=rng)),
    "four times as long": lambda rng: deal(TEST // 2, 4 * CARDS, rng=rng),
    "one question": lambda rng: deal(4 * TEST, questions=1, rng=rng),
}


def steps_of(model, rate=3e-3):
    """Train on fresh bags, and yield the number of steps after each."""
    adam = torch.optim.Adam(model.parameters(), rate)
    step = 0
    while True:
        letters, shown, answers = deal(BATCH)
        guesses = model(letters, shown).flatten(0, 1)
        loss = nn.functional.cross_entropy(guesses, answers.flatten(), ignore_index=-1)
        adam.zero_grad()
        loss.backward()
        adam.step()
        step += 1
        yield step


def train(member, seed, steps=STEPS):
    """Return a trained model."""
    torch.manual_seed(seed)
    model = Model(member)
    for step in steps_of(model):
        if step == steps:
            return model


@torch.no_grad()
def accuracy(model, condition):
    """Return the share of questions answered correctly, on bags not seen before."""
    rng = torch.Generator().manual_seed(99)
    letters, shown, answers, *mask = CONDITIONS[condition](rng)
    correct = model(letters, shown, *mask).argmax(-1) == answers
    return correct[answers >= 0].float().mean().item()


def judge(model):
    """Return the accuracy in each condition, and with its code repaired."""
    found = {name: accuracy(model, name) for name in CONDITIONS}
    model.encoder.layers[0].attention.member = zoo.right
    found["repaired"] = accuracy(model, "as trained")
    return {name: round(value, 5) for name, value in found.items()}


def xavier(model):
    """Start the attention with queries and keys of variance 1 after the norm."""
    attention = model.encoder.layers[0].attention
    for W in (attention.W_Q, attention.W_K, attention.W_V, attention.W_O):
        nn.init.xavier_normal_(W.weight)
        nn.init.zeros_(W.bias)


def steps_needed(member, seed, start):
    """Return the steps to 0.99 with one head of width 128; None if PATIENCE ends."""
    torch.manual_seed(seed)
    model = Model(member, d_model=128, n_heads=1)
    if start == "Xavier":
        xavier(model)
    for step in steps_of(model, 1e-3):
        if step % 10 == 0 and accuracy(model, "as trained") >= 0.99:
            return step
        if step == PATIENCE:
            return None


def exam(members, steps):
    """Return {condition: {member: accuracy of each seed}}."""
    table = {}
    for member in members:
        for seed in SEEDS:
            for name, value in judge(train(member, seed, steps)).items():
                rows = table.setdefault(name, {})
                rows.setdefault(member.name, []).append(value)
        print(
            steps, member.name, [table[name][member.name] for name in table], flush=True
        )
    return table


def wide_head():
    """Return {start: {member: steps of each seed}}."""
    table = {}
    for start in ("Xavier", "alone"):
        rows = table.setdefault(start, {})
        for member in WIDE:
            rows[member.name] = [steps_needed(member, seed, start) for seed in SEEDS]
            print(start, member.name, rows[member.name], flush=True)
    return table


def text_of(tables):
    """Return the tables as they are stored, one row of seeds a line."""
    text = json.dumps(tables, indent=1)
    return re.sub(r"\[[^]]*\]", lambda row: " ".join(row[0].split()), text) + "\n"


def main():
    """Train everything and write the tables."""
    torch.set_num_threads(1)  # the order of sums, and so the last digit, is fixed
    tables = {
        "exam": exam(wrong_attention.MEMBERS, STEPS),
        "late": exam(SLOW, LATE),
        "wide head": wide_head(),
    }
    STORE.write_text(text_of(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
