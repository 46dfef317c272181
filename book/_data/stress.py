"""Which letter of an English word is stressed? An encoder, trained from end to end.

    cd book && python -m _data.stress

The functions are those that chapter 13 explains, in the same order.
"""

import json
import math
import zlib
from copy import deepcopy
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import mha
import mha.nn

FOLDER = Path(__file__).parent
LONGEST = 14  # letters of the longest word
EPOCHS, BATCH, RATE = 6, 128, 3e-3


def read_words():
    """Return pairs of a word and the index of its stressed letter."""
    lines = (FOLDER / "stress_words.txt").read_text(encoding="utf-8").split()
    return [
        (line.lower(), next(i for i, c in enumerate(line) if c.isupper()))
        for line in lines
    ]


def family(word):
    """Return a number from 0 to 9, the same for all words that begin alike."""
    return zlib.crc32(word[:5].encode()) % 10


def split(pairs):
    """Return the words to train on, to choose the epoch by, and to test with."""
    parts = {"train": [], "validation": [], "test": []}
    for word, target in pairs:
        name = {3: "validation", 4: "test"}.get(family(word), "train")
        parts[name].append((word, target))
    return parts


def as_batch(pairs, length=None):
    """Return the letters (b, n), the padding mask (b, 1, 1, n) and the targets (b,)."""
    lengths = [len(word) for word, _ in pairs]
    mask = torch.as_tensor(mha.padding_mask(lengths, length))
    letters = torch.zeros(len(pairs), mask.shape[-1], dtype=torch.long)  # 0 is padding
    for row, (word, _) in zip(letters, pairs, strict=True):
        row[: len(word)] = torch.tensor([ord(c) - 96 for c in word])  # a to z: 1 to 26
    return letters, mask, torch.tensor([target for _, target in pairs])


class StressFinder(nn.Module):
    """Score every letter of a word; the letter with the highest score is the answer."""

    def __init__(self, n_layers=2, n_heads=4, d_model=64, dropout=0.0):
        super().__init__()
        self.embed = nn.Embedding(27, d_model)
        P = mha.sinusoidal_positional_encoding(20, d_model)
        self.register_buffer("positions", torch.tensor(P, dtype=torch.float32))
        self.encoder = mha.nn.Encoder(
            n_layers, d_model, n_heads, 2 * d_model,
            dropout=dropout, norm_first=True, final_norm=True,
        )  # fmt: skip
        self.score = nn.Linear(d_model, 1)

    def forward(self, letters, mask):
        X = self.embed(letters) + self.positions[: letters.shape[-1]]
        scores = self.score(self.encoder(X, mask)).squeeze(-1)
        return scores.masked_fill(~mask[:, 0, 0], -math.inf)  # no answer is padding


def fixed_batches(pairs, size, shuffle=False):
    """Yield batches of `size` words, all padded to the same length."""
    order = torch.randperm(len(pairs)) if shuffle else torch.arange(len(pairs))
    for rows in order.split(size):
        yield as_batch([pairs[i] for i in rows], LONGEST)


def sorted_batches(pairs, size, shuffle=False):
    """Yield batches of similar lengths, each padded to its longest word."""
    order = torch.randperm(len(pairs)) if shuffle else torch.arange(len(pairs))
    order = sorted(order.tolist(), key=lambda i: len(pairs[i][0]))  # ties stay shuffled
    batches = torch.tensor(order).split(size)
    turns = torch.randperm(len(batches)) if shuffle else range(len(batches))
    for turn in turns:
        yield as_batch([pairs[i] for i in batches[turn]])


@torch.no_grad()
def answers(model, batches):
    """Return the letter that the model answers for each word, and the right one."""
    model.eval()
    pairs = [(model(letters, mask).argmax(-1), y) for letters, mask, y in batches]
    found, targets = zip(*pairs, strict=True)
    return torch.cat(found), torch.cat(targets)


def accuracy(model, batches):
    """Return the share of words whose stressed letter the model finds."""
    found, targets = answers(model, batches)
    return (found == targets).float().mean().item()


def train(model, parts, batches=fixed_batches, epochs=EPOCHS, say=print):
    """Train; leave in the model the weights of the epoch that validated best."""
    steps = epochs * math.ceil(len(parts["train"]) / BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, steps)
    best, kept = 0.0, None
    for epoch in range(1, epochs + 1):
        model.train()
        for letters, mask, targets in batches(parts["train"], BATCH, shuffle=True):
            loss = F.cross_entropy(model(letters, mask), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        found = accuracy(model, batches(parts["validation"], 512))
        if found > best:
            best, kept = found, deepcopy(model.state_dict())
        say(f"epoch {epoch}: loss {loss:.2f}, validation {found:.3f}")
    model.load_state_dict(kept)
    return model


def mark(model, word):
    """Return the word with the letter that the model stresses as a capital."""
    (i,), _ = answers(model, [as_batch([(word, 0)])])
    return word[:i] + word[i].upper() + word[i + 1 :]


def load(name):
    """Return a model with weights that are stored here, rounded to 16 bits."""
    model = StressFinder()
    model.load_state_dict(torch.load(FOLDER / f"stress_{name}.pt"))
    return model.eval()


def exported(model):
    """Return the model as lists of numbers, for a page or for NumPy.

    A matrix W is (in, out), as in X W. Numbers are rounded to four digits.
    """

    def rounded(x):
        if isinstance(x, dict):
            return {name: rounded(part) for name, part in x.items()}
        if isinstance(x, list | tuple):
            return [rounded(part) for part in x]
        return (
            [float(f"{number:.4g}") for number in x] if x.ndim == 1 else rounded([*x])
        )

    stack = model.encoder.numpy_weights()
    return {
        "n_heads": model.encoder.layers[0].attention.n_heads,
        "embed": rounded(model.embed.weight.detach().numpy()),
        "positions": rounded(model.positions.numpy()),
        "layers": rounded(stack["layers"]),
        "final_norm": rounded(stack["final_norm"]),
        "score": rounded(
            [model.score.weight[0].detach().numpy(), model.score.bias.detach().numpy()]
        ),
    }


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    parts = split(read_words())
    print({name: len(pairs) for name, pairs in parts.items()})
    model = train(StressFinder(), parts)
    torch.save(model.state_dict(), "stress.pt")
    Path("stress.json").write_text(json.dumps(exported(model)), encoding="utf-8")
    print(f"test: {accuracy(model, fixed_batches(parts['test'], 512)):.3f}")
    words = "photograph photography photographic democrat democracy transformer"
    print(*(mark(model, word) for word in words.split()))


if __name__ == "__main__":
    main()
