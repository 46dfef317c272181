"""Train right and wrong attention for chapter 12.

In the folder book: python -m _data.wrong_attention

Eleven members of the zoo and no attention at all, three tasks, five seeds; about ten
minutes on one core.
"""

import json
from pathlib import Path

import torch
from torch import nn

from _data.training import Encoder, MultiHeadAttention
from mha import zoo

STORE = Path(__file__).with_suffix(".json")
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
    for _ in range(steps or STEPS[task]):
        tokens = torch.randint(LETTERS, (64, N))
        guesses = model(tokens).flatten(0, 1)
        loss = nn.functional.cross_entropy(guesses, TASKS[task](tokens).flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        if losses is not None:
            losses.append(loss.item())
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


def text_of(table):
    """Return the table as it is stored, one row of seeds a line."""
    blocks = []
    for task, rows in table.items():
        lines = [f"    {json.dumps(name)}: {row}" for name, row in rows.items()]
        blocks.append(f"  {json.dumps(task)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def main():
    """Train everything and write the table."""
    torch.set_num_threads(1)  # the order of sums, and so the last digit, is fixed
    table = {task: {} for task in TASKS}
    for task, rows in table.items():
        for member in MEMBERS:
            rows[member.name] = [run(member, task, seed) for seed in SEEDS]
            print(task, member.name, rows[member.name], flush=True)
    STORE.write_text(text_of(table), encoding="utf-8")


if __name__ == "__main__":
    main()
