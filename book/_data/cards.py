"""A harder exam for the members of chapter 12: see __main__.py.

A bag of cards, without positions. A card has a letter and a digit; a question has a
letter, and its answer is the digit of the card with the next letter of the alphabet.
All train on six cards and six questions, and are then asked what training did not ask.
About eight minutes on one core.
"""

from itertools import count

import torch
from torch import nn

from _data.training import Encoder, descend, trained
from _data.wrong_attention import MEMBERS, FromTheZoo
from mha import zoo

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


def losses_of(model, steps):
    """Yield the loss on fresh bags."""
    for _ in range(steps):
        letters, shown, answers = deal(BATCH)
        guesses = model(letters, shown).flatten(0, 1)
        yield nn.functional.cross_entropy(guesses, answers.flatten(), ignore_index=-1)


def train(member, seed, steps=STEPS):
    """Return a trained model."""
    torch.manual_seed(seed)
    model = Model(member)
    adam = torch.optim.Adam(model.parameters(), 3e-3, fused=True)
    return trained(model, adam, losses_of(model, steps))


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
    adam = torch.optim.Adam(model.parameters(), 1e-3, fused=True)
    for step, _ in zip(count(1), descend(adam, losses_of(model, PATIENCE))):
        if step % 10 == 0 and accuracy(model, "as trained") >= 0.99:
            return step
    return None


def exam(members, steps):
    """Return {condition: {member: accuracy of each seed}}."""
    table = {}
    for member in members:
        for seed in SEEDS:
            for name, value in judge(train(member, seed, steps)).items():
                table.setdefault(name, {}).setdefault(member.name, []).append(value)
    return table


def wide_head(start):
    """Return {member: steps of each seed}."""
    return {m.name: [steps_needed(m, seed, start) for seed in SEEDS] for m in WIDE}


def results():
    """Yield the three tables."""
    yield "exam", exam(MEMBERS, STEPS)
    yield "late", exam(SLOW, LATE)
    yield "wide head", {start: wide_head(start) for start in ("Xavier", "alone")}
