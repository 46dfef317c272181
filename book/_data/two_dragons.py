"""Train every cell of chapter 6 and store its R²: python book/_data/two_dragons.py

Five seeds a cell, about eight minutes on one core.
"""

import json
from pathlib import Path

import torch
from torch import nn

import mha.nn

STORE = Path(__file__).with_suffix(".json")
SEEDS = range(5)
N, P = 10, 4  # creatures, and the numbers that each of them carries
TOKEN = 20  # columns of a token: room for two names, or for a name and its numbers
TEST = 50_000  # nights on which a trained hero is judged


def draw(rng, nights, h, named=False, reading=False, apart=False, summed=False):
    """Return the tokens of the hero and of the creatures, and what he wants to know.

    He wants the contents of creatures 0 to h - 1, or of those that he names. `reading`
    keys see the contents, `apart` gives him a query for each, `summed` asks for less.
    """
    contents = torch.randn(nights, N, P, generator=rng)
    wanted = torch.arange(h).expand(nights, h)
    if named:
        wanted = torch.rand(nights, N, generator=rng).argsort(1)[:, :h]
    names = torch.eye(N).expand(nights, N, N)
    values = torch.cat([names, contents], -1)
    target = contents[torch.arange(nights)[:, None], wanted]
    query = torch.eye(N)[wanted] if named or apart else torch.ones(nights, h, 1)
    if summed:
        target = target.sum(1, keepdim=True)
    if not apart:
        query, target = query.flatten(1)[:, None], target.flatten(1)[:, None]
    return [widen(x) for x in (query, values if reading else names, values)], target


def widen(x):
    """Return `x` with columns of zeros up to the width of a token."""
    return nn.functional.pad(x, (0, TOKEN - x.shape[-1]))


class MultiHeadAttention(mha.nn.MultiHeadAttention):
    """The layer of mha.nn with the start that it had when the runs were stored."""

    def reset_parameters(self):
        """Start each matrix as PyTorch starts it alone."""
        for W in (self.W_Q, self.W_K, self.W_V, self.W_O):
            W.reset_parameters()


class Hero(nn.Module):
    """Look once a layer, with some heads, and guess from what comes home."""

    def __init__(self, n_heads, n_out, d_model=32, n_layers=1, deep=False):
        super().__init__()
        self.embed = nn.Linear(TOKEN, d_model)
        looks = [MultiHeadAttention(d_model, n_heads) for _ in range(n_layers)]
        self.looks = nn.ModuleList(looks)
        self.guess = nn.Linear(d_model, n_out)
        if deep:
            inner = nn.Linear(d_model, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()
            self.guess = nn.Sequential(*inner, nn.Linear(128, n_out))

    def forward(self, query, keys, values):
        y, keys, values = (self.embed(x) for x in (query, keys, values))
        for look in self.looks:
            y = y + look(y, keys, values)
        return self.guess(y)


def make(seed, n_heads, task, **options):
    """Return a hero whose guess is as wide as the target of the task."""
    torch.manual_seed(seed)
    _, target = draw(torch.Generator(), 1, **task)
    return Hero(n_heads, target.shape[-1], **options)


def train(hero, task, seed, steps=1000):
    """Train on fresh nights; return the loss of each step, 1 for guessing always 0."""
    rng = torch.Generator().manual_seed(seed)
    adam = torch.optim.Adam(hero.parameters(), 3e-3)
    cooling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    losses = []
    for _ in range(steps):
        tokens, target = draw(rng, 128, **task)
        loss = nn.functional.mse_loss(hero(*tokens), target)
        adam.zero_grad()
        loss.backward()
        adam.step()
        cooling.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def known(hero, task):
    """Return R² on nights that the hero has not seen."""
    tokens, target = draw(torch.Generator().manual_seed(99), TEST, **task)
    error = hero(*tokens) - target
    return 1 - (error.square().mean() / target.square().mean()).item()


@torch.no_grad()
def become_twins(look):
    """Give the second of two heads all matrices of the first, its block of W_O too."""
    for linear in (look.W_Q, look.W_K, look.W_V):
        for x in (linear.weight, linear.bias):
            first, second = x.chunk(2)
            second.copy_(first)
    first, second = look.W_O.weight.chunk(2, dim=1)
    second.copy_(first)


def cells():
    """Return {name: options of `run`} for all that chapter 6 stores."""
    found = {}
    for h in (1, 2, 4):
        for m in (1, 2, 4):
            found[f"h={h} m={m}"] = {"n_heads": m, "task": {"h": h}}
    for h in (1, 2):
        for m in (1, 2, 4):
            task = {"h": h, "named": True}
            found[f"h={h} m={m} named"] = {"n_heads": m, "task": task}
    hasty = found["h=2 m=2 named"] | {"steps": 600}
    found["h=2 m=2 named, 600 steps"] = hasty
    for width in (8, 128, 512):
        found[f"width {width}"] = {"d_model": width}
    reading = {"h": 2, "reading": True}
    return found | {
        "deep reader": {"deep": True},
        "twins": {"n_heads": 2, "twins": True},
        "only the sum": {"task": {"h": 2, "summed": True}},
        "two layers": {"n_layers": 2},
        "two queries": {"task": {"h": 2, "apart": True}},
        "reading keys": {"task": reading, "steps": 2000},
        "reading keys, named": {"task": reading | {"named": True}, "steps": 2000},
    }


def run(seed, n_heads=1, task=None, steps=1000, twins=False, **options):
    """Return the R² of one training."""
    task = task or {"h": 2}
    hero = make(seed, n_heads, task, **options)
    if twins:
        become_twins(hero.looks[0])
    train(hero, task, seed, steps)
    return round(known(hero, task), 3)


def text_of(table):
    """Return the table as it is stored, one cell a line."""
    lines = [f"  {json.dumps(name)}: {row}" for name, row in table.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main():
    """Train all cells and write the table."""
    torch.set_num_threads(1)  # the order of sums, and so the last digit, is fixed
    table = {}
    for name, options in cells().items():
        table[name] = [run(seed, **options) for seed in SEEDS]
        print(name, table[name], flush=True)
    STORE.write_text(text_of(table), encoding="utf-8")


if __name__ == "__main__":
    main()
