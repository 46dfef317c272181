"""Train readers that know positions in several ways, for chapter 10: see __main__.py.

Five seeds, and three for the long runs; about six minutes on one core.
"""

import torch
from torch import nn

from _data.training import Encoder, MultiHeadAttention, descend
from mha import sinusoidal_positional_encoding
from mha.nn import scaled_dot_product_attention

SEEDS, FEW_SEEDS = range(5), range(3)
LETTERS, D_MODEL, N_HEADS = 10, 32, 4
BATCH = 64
SHORT, LONGER = 8, 12  # letters in training, and in the harder test
LONG, LONGEST = 32, 48  # the same for the curves
MILESTONES = (600, 3000, 8000)  # steps of the long runs; the others take 600
ROOM = 64  # rows of a learned table; only those of the training length get trained
TASKS = {
    "reverse": lambda letters: letters.flip(-1),
    "previous": lambda letters: torch.cat([letters[:, :1], letters[:, :-1]], 1),
}
WAYS = ("none", "learned", "sinusoids", "turned")


class Reader(nn.Module):
    """Embed letters, add where they stand, look once, and guess a letter for each."""

    def __init__(self, way):
        super().__init__()
        self.way = way
        self.embed = nn.Embedding(LETTERS, D_MODEL)
        self.table = nn.Parameter(torch.randn(ROOM, D_MODEL) / 2)
        self.encoder = Encoder(
            1, D_MODEL, N_HEADS, 4 * D_MODEL, norm_first=True, final_norm=True
        )
        if way == "turned":
            self.encoder.layers[0].attention = TurnedAttention(D_MODEL, N_HEADS)
        self.guess = nn.Linear(D_MODEL, LETTERS)

    def forward(self, letters):
        X = self.embed(letters) + where(self.way, letters, self.table)
        return self.guess(self.encoder(X))


def where(way, letters, table):
    """Return what is added to a batch of letters to say where each of them stands."""
    n = letters.shape[1]
    sinusoids = torch.from_numpy(sinusoidal_positional_encoding(n, D_MODEL)).float()
    return {"sinusoids": sinusoids, "learned": table[:n]}.get(way, 0)


class TurnedAttention(MultiHeadAttention):
    """Turn each query and key by its position before they meet (rotary positions)."""

    def forward(self, X, mask=None, **look):
        Q, K, V = (
            W(X).unflatten(-1, (self.n_heads, -1)).transpose(-3, -2)
            for W in (self.W_Q, self.W_K, self.W_V)
        )
        heads = scaled_dot_product_attention(turn(Q), turn(K), V, mask)
        return self.W_O(heads.transpose(-3, -2).flatten(-2))


def turn(x):
    """Turn each pair of columns of row t by t times its frequency."""
    n, d = x.shape[-2:]
    angle = torch.arange(n)[:, None] * 10000 ** (-torch.arange(0, d, 2) / d)
    b, a = x[..., 0::2], x[..., 1::2]  # nothing is loaded, so either may be the first
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([a * sin + b * cos, a * cos - b * sin], -1).flatten(-2)


def train(way, task, seed, n=SHORT, steps=600):
    """Return a reader trained on fresh sequences of `n` letters."""
    return next(trained_for(way, task, seed, n, (steps,)))


def trained_for(way, task, seed, n, milestones):
    """Yield one reader, trained on and on, after each number of steps."""
    torch.manual_seed(seed)
    reader = Reader(way)
    adam = torch.optim.Adam(reader.parameters(), 3e-3, fused=True)
    texts = (torch.randint(LETTERS, (BATCH, n)) for _ in range(max(milestones)))
    losses = (
        nn.functional.cross_entropy(reader(x).flatten(0, 1), TASKS[task](x).flatten())
        for x in texts
    )
    for step, _ in enumerate(descend(adam, losses), 1):
        if step in milestones:
            yield reader


@torch.no_grad()
def right(reader, task, n):
    """Return, for each of `n` positions, the share of letters that are right."""
    rng = torch.Generator().manual_seed(99)
    parts = torch.randint(LETTERS, (64, BATCH, n), generator=rng)
    hits = [reader(x).argmax(-1) == TASKS[task](x) for x in parts]
    return torch.cat(hits).float().mean(0)


def run(way, task, seed):
    """Return the share right at the trained length, and at new positions beyond it."""
    reader = train(way, task, seed)
    inside = right(reader, task, SHORT).mean()
    beyond = right(reader, task, LONGER)[SHORT:].mean()
    return [round(x.item(), 3) for x in (inside, beyond)]


def curve(way, seed):
    """Return the share right at each position from half of LONG on, of LONGEST."""
    reader = train(way, "previous", seed, n=LONG, steps=800)
    shares = right(reader, "previous", LONGEST)[LONG // 2 :]
    return [round(x.item(), 3) for x in shares]


def patience(way, seed):
    """Return the share of a reversed text that is right after each milestone."""
    readers = trained_for(way, "reverse", seed, SHORT, MILESTONES)
    return [
        round(right(reader, "reverse", SHORT).mean().item(), 3) for reader in readers
    ]


def results():
    """Yield the runs of each seed, cell by cell."""
    for task in TASKS:
        for way in WAYS:
            yield f"{task} {way}", [run(way, task, seed) for seed in SEEDS]
    for way in WAYS[1:]:
        yield f"curve {way}", [curve(way, seed) for seed in SEEDS]
    yield "reverse turned, longer", [patience("turned", seed) for seed in FEW_SEEDS]
