"""Train right and wrong attention for chapter 12: see __main__.py.

Eleven members of the zoo and no attention at all, three tasks, five seeds; about ten
minutes on one core.
"""

import torch
from torch import nn

from _data.training import Encoder, MultiHeadAttention, descend
from mha import zoo

SEEDS = range(5)
# Twelve tokens and heads of width 8, so that √n, √d_k and √d_model are three numbers.
LETTERS, N, D_MODEL, N_HEADS = 10, 12, 32, 4
TEST = 2000  # fresh sequences on which a trained model is judged


def no_attention(X, W_O, **rest):
    """Return what a layer of attention adds that has fallen silent."""
    return 0 * (X @ W_O)


no_attention.name = "no_attention"

MEMBERS = (
    no_attention,
    zoo.right,
    zoo.no_scale,
    zoo.scale_sqrt_n,
    zoo.scale_sqrt_d_model,
    zoo.scale_after_softmax,
    zoo.softmax_over_queries,
    zoo.merge_without_transpose,
    zoo.split_without_transpose,
    zoo.input_split_before_projection,
    zoo.tied_query_key,
    zoo.no_output_projection,
)
TASKS = {
    "copy": lambda tokens: tokens,
    "reverse": lambda tokens: tokens.flip(-1),
    "sort": lambda tokens: tokens.sort(-1).values,
}
LAYERS = {"copy": 1, "reverse": 1, "sort": 2}
STEPS = {"copy": 300, "reverse": 600, "sort": 800}


class FromTheZoo(MultiHeadAttention):
    """Look with a member of the zoo; its matrices are those of a layer of ours."""

    def __init__(self, member, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.member = member

    def forward(self, X, mask=None, **look):
        parts = {letter: getattr(self, f"W_{letter}") for letter in "QKVO"}
        weights = {f"W_{letter}": part.weight.T for letter, part in parts.items()}
        biases = {f"b_{letter}": part.bias for letter, part in parts.items()}
        return self.member(
            X, n_heads=self.n_heads, mask=mask, **weights, **biases, **look
        )


class Translator(nn.Module):
    """Give every place of a sequence a letter: embed, look, guess."""

    def __init__(self, member, n_layers):
        super().__init__()
        self.embed = nn.Embedding(LETTERS, D_MODEL)
        self.places = nn.Parameter(torch.randn(N, D_MODEL) / 2)
        self.encoder = Encoder(
            n_layers, D_MODEL, N_HEADS, 4 * D_MODEL, norm_first=True, final_norm=True
        )
        for layer in self.encoder.layers:
            layer.attention = FromTheZoo(member, D_MODEL, N_HEADS)
        self.guess = nn.Linear(D_MODEL, LETTERS)

    def forward(self, tokens):
        return self.guess(self.encoder(self.embed(tokens) + self.places))


def train(member, task, seed, steps=None, losses=None):
    """Return a model trained on fresh sequences; `losses` collects its losses."""
    torch.manual_seed(seed)
    model = Translator(member, LAYERS[task])
    adam = torch.optim.Adam(model.parameters(), 3e-3, fused=True)
    batches = (torch.randint(LETTERS, (64, N)) for _ in range(steps or STEPS[task]))
    found = (
        nn.functional.cross_entropy(model(x).flatten(0, 1), TASKS[task](x).flatten())
        for x in batches
    )
    kept = list(descend(adam, found))
    if losses is not None:
        losses += kept
    return model


@torch.no_grad()
def accuracy(model, task):
    """Return the share of letters that are right, on sequences not seen before."""
    rng = torch.Generator().manual_seed(99)
    tokens = torch.randint(LETTERS, (TEST, N), generator=rng)
    return (model(tokens).argmax(-1) == TASKS[task](tokens)).float().mean().item()


def run(member, task, seed):
    """Return the accuracy of one training."""
    return round(accuracy(train(member, task, seed), task), 5)


def results():
    """Yield the accuracies of each member and seed, task by task."""
    for task in TASKS:
        yield task, {m.name: [run(m, task, seed) for seed in SEEDS] for m in MEMBERS}
