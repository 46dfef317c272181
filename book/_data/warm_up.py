"""Train deep stacks with and without warm-up, for chapter 11: see __main__.py.

Twelve layers, post-norm and pre-norm, two learning rates, three seeds;
about four minutes on one core.
"""

from functools import cache

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from _data.digits import accuracy
from _data.training import Encoder, descend

SEEDS = range(3)
N_LAYERS, D_MODEL, N_HEADS = 12, 32, 4
STEPS, WARM_UP, BATCH = 300, 100, 64


@cache
def split(seed):
    """Return the images and classes to train on, and those to judge by."""
    found = load_digits()
    images = torch.tensor(found.images / 16, dtype=torch.float32)
    classes = torch.tensor(found.target)
    train, test = train_test_split(
        range(len(classes)), test_size=500, random_state=seed, stratify=found.target
    )
    return (images[train], classes[train]), (images[test], classes[test])


class DeepReader(nn.Module):
    """Read an image row by row through many layers, then name it."""

    def __init__(self, norm_first, n_layers=N_LAYERS):
        super().__init__()
        self.embed = nn.Linear(8, D_MODEL)
        self.places = nn.Parameter(0.3 * torch.randn(8, D_MODEL))
        self.encoder = Encoder(
            n_layers, D_MODEL, N_HEADS, 2 * D_MODEL, norm_first=norm_first,
            final_norm=norm_first,
        )  # fmt: skip
        self.answer = nn.Linear(D_MODEL, 10)
        for part in self.modules():
            if isinstance(part, nn.Linear):
                nn.init.xavier_normal_(part.weight)
                nn.init.zeros_(part.bias)

    def forward(self, images):
        tokens = self.encoder(self.embed(images) + self.places)
        return self.answer(tokens.mean(1))


def make(seed, norm_first, n_layers=N_LAYERS):
    torch.manual_seed(seed)
    return DeepReader(norm_first, n_layers)


def train(model, images, classes, seed, rate, warm_up=0, steps=STEPS):
    """Climb to the rate in `warm_up` steps, then keep it; return the losses."""
    rng = torch.Generator().manual_seed(seed)
    adam = torch.optim.Adam(model.parameters(), rate, betas=(0.9, 0.98), fused=True)
    climb = torch.optim.lr_scheduler.LambdaLR(
        adam, lambda step: min(1, (step + 1) / warm_up) if warm_up else 1
    )
    batches = (
        torch.randint(len(images), (BATCH,), generator=rng) for _ in range(steps)
    )
    losses = (
        nn.functional.cross_entropy(model(images[batch]), classes[batch])
        for batch in batches
    )
    return list(descend(adam, losses, climb))


def gradient_norms(seed, norm_first, n_layers):
    """Return the norm of the gradient of every layer's W_2 before the first step."""
    model = make(seed, norm_first, n_layers)
    (images, classes), _ = split(seed)
    nn.functional.cross_entropy(model(images[:128]), classes[:128]).backward()
    return [layer.W_2.weight.grad.norm().item() for layer in model.encoder.layers]


def cells():
    """Return {name: (norm_first, rate, warm_up)}."""
    return {
        f"{'pre' if norm_first else 'post'} {rate:g} warm-up {warm_up}": (
            norm_first,
            rate,
            warm_up,
        )
        for norm_first in (False, True)
        for rate in (1e-3, 3e-3)
        for warm_up in (0, WARM_UP)
    }


def run(seed, norm_first, rate, warm_up, steps=STEPS):
    """Return the accuracy of one training, and its loss, a mean for each 20 steps."""
    known, fresh = split(seed)
    model = make(seed, norm_first)
    losses = torch.tensor(train(model, *known, seed, rate, warm_up, steps))
    curve = [round(x, 3) for x in losses.reshape(-1, 20).mean(1).tolist()]
    return round(accuracy(model, fresh), 3), curve


def results():
    """Yield the runs of each seed, setting by setting."""
    for name, setting in cells().items():
        yield name, [run(seed, *setting) for seed in SEEDS]
