"""Train encoders on handwritten digits for chapter 14: see __main__.py.

Ten seeds a cell, about five minutes on one core.
"""

import copy
from collections import defaultdict

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from _data.training import Encoder, trained

SEEDS = range(10)
ROWS, COLUMNS = 8, 8  # an image is eight tokens of eight numbers
D_MODEL, N_LAYERS = 32, 2
HEADS = 1, 2, 4, 8
PARTS = {"train": 1000, "choose": 297, "test": 500}


def split(seed):
    """Return {part: (images, classes)} with tensors; parts share no image."""
    digits = load_digits()
    images, left = digits.images / digits.images.max(), np.arange(len(digits.target))
    found = {}
    for name in ("test", "choose"):
        left, part = train_test_split(
            left, test_size=PARTS[name], random_state=seed, stratify=digits.target[left]
        )
        found[name] = part
    found["train"] = left
    images = torch.tensor(images, dtype=torch.float32)
    classes = torch.tensor(digits.target)
    return {name: (images[part], classes[part]) for name, part in found.items()}


class Reader(nn.Module):
    """Read an image row by row, then answer once for the whole of it."""

    def __init__(self, n_heads, n_out, positions=True):
        super().__init__()
        self.embed = nn.Linear(COLUMNS, D_MODEL)
        places = 0.3 * torch.randn(ROWS, D_MODEL)
        self.places = nn.Parameter(places) if positions else 0.0
        self.encoder = Encoder(N_LAYERS, D_MODEL, n_heads, 2 * D_MODEL)
        self.answer = nn.Linear(D_MODEL, n_out)

    def forward(self, images):
        tokens = self.encoder(self.embed(images) + self.places)
        return self.answer(tokens.mean(1))


def train(model, images, wanted, loss_of, seed, epochs=30):
    """Show every image `epochs` times."""
    rng = torch.Generator().manual_seed(seed)
    adam = torch.optim.AdamW(model.parameters(), 3e-3, fused=True)
    batches = -(-len(images) // 64)
    rate = torch.optim.lr_scheduler.OneCycleLR(adam, 3e-3, epochs * batches)
    orders = (torch.randperm(len(images), generator=rng) for _ in range(epochs))
    losses = (
        loss_of(model(images[batch]), wanted[batch])
        for order in orders
        for batch in order.split(64)
    )
    return trained(model, adam, losses, rate).eval()


def make(seed, n_heads=4, positions=True, attention=True):
    """Return a reader; without attention its heads are silent and stay so."""
    torch.manual_seed(seed)
    model = Reader(n_heads, 10, positions)
    if not attention:
        for layer in model.encoder.layers:
            for parameter in layer.attention.W_O.parameters():
                nn.init.zeros_(parameter).requires_grad_(False)
    return model


def classifier(seed, parts, epochs=30, **options):
    """Return a reader that has learned to name digits."""
    loss_of, model = nn.functional.cross_entropy, make(seed, **options)
    return train(model, *parts["train"], loss_of, seed, epochs)


@torch.no_grad()
def accuracy(model, part):
    """Return the share of digits that are named rightly."""
    images, classes = part
    return (model(images).argmax(-1) == classes).float().mean().item()


@torch.no_grad()
def loss_on(model, part):
    images, classes = part
    return nn.functional.cross_entropy(model(images), classes).item()


def shuffled(part, seed=0):
    """Return the part with the rows of every image in an order of their own."""
    images, classes = part
    rng = torch.Generator().manual_seed(seed)
    order = torch.rand(len(images), ROWS, generator=rng).argsort(1)
    return images.gather(1, order[:, :, None].expand_as(images)), classes


@torch.no_grad()
def moved(model, part):
    """Return how far shuffled rows move a logit."""
    return (model(part[0]) - model(shuffled(part)[0])).abs().max().item()


@torch.no_grad()
def without_heads(model, heads):
    """Return a copy in which the blocks of W_O of these (layer, head) are 0."""
    model = copy.deepcopy(model)
    for layer, head in heads:
        attention = model.encoder.layers[layer].attention
        width = D_MODEL // attention.n_heads
        # PyTorch keeps W_O transposed: its rows are columns here.
        attention.W_O.weight[:, head * width : (head + 1) * width] = 0
    return model


def heads_of(model):
    """Return the (layer, head) pairs of a reader."""
    layers = model.encoder.layers
    return [
        (i, r) for i in range(len(layers)) for r in range(layers[i].attention.n_heads)
    ]


def least_important_first(model, part):
    """Order the heads by how much the loss on `part` grows without each."""
    return sorted(
        heads_of(model), key=lambda head: loss_on(without_heads(model, [head]), part)
    )


def pruned(model, order, part):
    """Return the accuracy without the first 0, 1, 2, … heads of `order`."""
    return [
        round(accuracy(without_heads(model, order[:k]), part), 3)
        for k in range(len(order) + 1)
    ]


def run(seed):
    """Return {name: result} of everything that is trained with this seed."""
    parts = split(seed)
    found = {}
    for h in HEADS:
        model = classifier(seed, parts, n_heads=h)
        found[f"heads {h}"] = round(accuracy(model, parts["test"]), 3)
        if h >= 4:
            found |= prunings(seed, model, parts)
        if h == 4:
            mixed = shuffled(parts["test"])
            found["rows shuffled"] = round(accuracy(model, mixed), 3)
    silent = classifier(seed, parts, attention=False)
    found["no attention"] = round(accuracy(silent, parts["test"]), 3)
    return found | without_positions(seed, parts)


def without_positions(seed, parts):
    """Return what a reader is worth that does not know which row is which."""
    model, test = classifier(seed, parts, positions=False), parts["test"]
    return {
        "no positions": round(accuracy(model, test), 3),
        "no positions, rows shuffled": round(accuracy(model, shuffled(test)), 3),
        "no positions, logits move by": float(f"{moved(model, test):.1e}"),
    }


def prunings(seed, model, parts):
    """Return accuracies on test; what is important is judged on other images."""
    order = least_important_first(model, parts["choose"])
    chance = np.random.default_rng(seed).permutation(heads_of(model)).tolist()
    h, test = len(order) // N_LAYERS, parts["test"]
    alone = [pruned(model, [head], test)[1] for head in order]
    return {
        f"heads {h}, least important first": pruned(model, order, test),
        f"heads {h}, at random": pruned(model, chance, test),
        f"heads {h}, one off": alone,
    }


def results():
    """Yield the results of all seeds, one name after the other."""
    table = defaultdict(list)
    for seed in SEEDS:
        for name, result in run(seed).items():
            table[name].append(result)
    yield from table.items()
