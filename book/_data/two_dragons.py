"""Train every cell of chapter 6 for its R²: python -m _data two_dragons

Five seeds per cell, about ten minutes on one core.
"""

import torch
from torch import nn

from _data.training import MultiHeadAttention, descend

SEEDS = range(5)
N, P = 10, 4  # tokens, and the numbers in the content of each of them
TOKEN = 20  # columns of a token: room for two names, or for a name and a content
TEST = 50_000  # examples on which a trained model is judged


def draw(
    rng,
    examples,
    u,
    named=False,
    keys_see_contents=False,
    apart=False,
    summed=False,
    discrete=False,
):
    """Return query, key and value tokens, and the contents that have to be guessed.

    The unknowns are the contents of tokens 0 to u - 1, or of those that the query
    names. `apart` asks for each with a query of its own, `summed` only for their sum.
    The contents are Gaussian, or 1 and -1 with equal chances if `discrete`.
    """
    contents = torch.randn(examples, N, P, generator=rng)
    if discrete:
        contents = contents.sign()
    wanted = torch.arange(u).expand(examples, u)
    if named:
        wanted = torch.rand(examples, N, generator=rng).argsort(1)[:, :u]
    names = torch.eye(N).expand(examples, N, N)
    values = torch.cat([names, contents], -1)
    keys = values if keys_see_contents else names
    target = contents[torch.arange(examples)[:, None], wanted]
    query = torch.eye(N)[wanted] if named or apart else torch.ones(examples, u, 1)
    if summed:
        target = target.sum(1, keepdim=True)
    if not apart:
        query, target = query.flatten(1)[:, None], target.flatten(1)[:, None]
    return [widen(x) for x in (query, keys, values)], target


def widen(x):
    """Return `x` with columns of zeros up to the width of a token."""
    return nn.functional.pad(x, (0, TOKEN - x.shape[-1]))


class Model(nn.Module):
    """Embed the tokens, attend to them in each layer, and guess from the output.

    `first` is a layer on each value token before attention, "linear" or "non-linear".
    """

    def __init__(self, n_heads, n_out, d_model=32, n_layers=1, deep=False, first=None):
        super().__init__()
        self.embed = nn.Linear(TOKEN, d_model)
        layers = [MultiHeadAttention(d_model, n_heads) for _ in range(n_layers)]
        self.layers = nn.ModuleList(layers)
        self.readout = nn.Linear(d_model, n_out)
        if deep:
            inner = nn.Linear(d_model, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()
            self.readout = nn.Sequential(*inner, nn.Linear(128, n_out))
        self.embed_values = self.embed
        if first:
            between = nn.ReLU() if first == "non-linear" else nn.Identity()
            inner = nn.Linear(TOKEN, 128), between
            self.embed_values = nn.Sequential(*inner, nn.Linear(128, d_model))

    def forward(self, query, keys, values):
        y, keys, values = self.embed(query), self.embed(keys), self.embed_values(values)
        for layer in self.layers:
            y = y + layer(y, keys, values)
        return self.readout(y)


def make(seed, n_heads, task, **options):
    """Return a model whose guess is as wide as the target of the task."""
    torch.manual_seed(seed)
    _, target = draw(torch.Generator(), 1, **task)
    return Model(n_heads, target.shape[-1], **options)


def train(model, task, seed, steps=1000):
    """Train on fresh examples; return each loss (always guessing 0 has a loss of 1)."""
    rng = torch.Generator().manual_seed(seed)
    adam = torch.optim.Adam(model.parameters(), 3e-3, fused=True)
    cooling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    examples = (draw(rng, 128, **task) for _ in range(steps))
    losses = (nn.functional.mse_loss(model(*x), target) for x, target in examples)
    return list(descend(adam, losses, cooling))


@torch.no_grad()
def known(model, task):
    """Return R² on examples that the model has not seen."""
    tokens, target = draw(torch.Generator().manual_seed(99), TEST, **task)
    error = model(*tokens) - target
    return 1 - (error.square().mean() / target.square().mean()).item()


@torch.no_grad()
def become_twins(layer):
    """Give the second of two heads all matrices of the first, its block of W_O too."""
    for linear in (layer.W_Q, layer.W_K, layer.W_V):
        for x in (linear.weight, linear.bias):
            first, second = x.chunk(2)
            second.copy_(first)
    first, second = layer.W_O.weight.chunk(2, dim=1)
    second.copy_(first)


def cells():
    """Return {name: options of `run`} for all that chapter 6 stores.

    u counts the unknowns and h the heads. Where no u is named, it is 2; no h, 1.
    """
    found = {}
    for u in (1, 2, 4):
        for h in (1, 2, 4):
            found[f"u={u} h={h}"] = {"n_heads": h, "task": {"u": u}}
    for u in (1, 2):
        for h in (1, 2, 4):
            task = {"u": u, "named": True}
            found[f"u={u} h={h} named"] = {"n_heads": h, "task": task}
    short = found["u=2 h=2 named"] | {"steps": 600}
    found["u=2 h=2 named, 600 steps"] = short
    for width in (8, 128, 512):
        found[f"width {width}"] = {"d_model": width}
    seeing = {"u": 2, "keys_see_contents": True}
    discrete = {"u": 2, "discrete": True}
    found |= {
        "deep readout": {"deep": True},
        "twins": {"n_heads": 2, "twins": True},
        "only the sum": {"task": {"u": 2, "summed": True}},
        "two layers": {"n_layers": 2},
        "two queries": {"task": {"u": 2, "apart": True}},
        "keys see contents": {"task": seeing, "steps": 2000},
        "keys see contents, named": {"task": seeing | {"named": True}, "steps": 2000},
        "contents ±1, deep readout": {"task": discrete, "deep": True},
        "contents ±1, linear readout": {"task": discrete},
    }
    for first in ("non-linear", "linear"):
        for u in (2, 4):
            name = f"{first} layer first, u={u}"
            found[name] = {"task": {"u": u}, "first": first}
    return found


def run(seed, n_heads=1, task=None, steps=1000, twins=False, **options):
    """Return the R² of one training."""
    task = task or {"u": 2}
    model = make(seed, n_heads, task, **options)
    if twins:
        become_twins(model.layers[0])
    train(model, task, seed, steps)
    return round(known(model, task), 3)


def results():
    """Yield the R² of each seed, cell by cell."""
    for name, options in cells().items():
        yield name, [run(seed, **options) for seed in SEEDS]
