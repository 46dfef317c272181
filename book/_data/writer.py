"""Train a small model that writes like Alice, for chapter 17: see __main__.py.

It has two pre-norm layers under a causal mask, reads up to LENGTH characters, and takes
about five minutes on one core. The file holds its weights as those of the live encoder.
"""

import re
from pathlib import Path

import torch
from torch import nn

import mha
from _data.live_encoder import packed
from mha.nn import Encoder

LETTERS = " abcdefghijklmnopqrstuvwxyz.,'!?-"
LENGTH, WIDTH, HEADS, LAYERS = 256, 64, 4, 2
STEPS, BATCH, RATE = 2500, 12, 4e-3


def novel():
    """Return the text as numbers; the last tenth is for the test."""
    path = Path(__file__).parent / "alice.txt"
    text = path.read_text(encoding="utf-8").lower().split("chapter i\n", 1)[1]
    text = re.sub(r"[^a-z.,'!?-]+", " ", text)
    data = torch.tensor([LETTERS.index(letter) for letter in text])
    return data.split([int(0.9 * len(data)), len(data) - int(0.9 * len(data))])


class Writer(nn.Module):
    """Read characters, and guess at each place which one comes next."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS), WIDTH)
        table = mha.sinusoidal_positional_encoding(LENGTH, WIDTH)
        self.register_buffer("positions", torch.tensor(table, dtype=torch.float32))
        self.encoder = Encoder(
            LAYERS, WIDTH, HEADS, 2 * WIDTH, norm_first=True, final_norm=True
        )
        self.guess = nn.Linear(WIDTH, len(LETTERS))

    def forward(self, letters):
        X = self.embed(letters) + self.positions[: letters.shape[1]]
        return self.guess(self.encoder(X, is_causal=True))


def bits(model, rows):
    """Return the mean bits per character of texts (rows, characters)."""
    logits = model(rows[:, :-1]).transpose(1, 2)
    nats = nn.functional.cross_entropy(logits, rows[:, 1:])
    return nats / torch.log(torch.tensor(2.0))


def train(data, steps=STEPS):
    torch.manual_seed(0)
    model = Writer()
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    for step in range(steps):
        rate = min(1, (step + 1) / 100) * (1 - step / steps)  # up, then slowly down
        optimiser.param_groups[0]["lr"] = RATE * rate + 1e-5
        start = torch.randint(len(data) - LENGTH - 1, (BATCH, 1))
        loss = bits(model, data[start + torch.arange(LENGTH + 1)])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 100 == 0:
            print(step, round(loss.item(), 2), flush=True)
    return model.eval()


def exported(model):
    """Return the weights by the names of the steps."""
    stack = model.encoder.numpy_weights()
    guess = model.guess
    return {
        "embed": model.embed.weight.tolist(),
        "layers": [
            {name: x.tolist() for name, x in layer.items()} for layer in stack["layers"]
        ],
        "final_norm": [x.tolist() for x in stack["final_norm"]],
        "W_guess": guess.weight.T.tolist(),
        "b_guess": guess.bias.tolist(),
    }


def results():
    training, test = novel()
    model = train(training)
    rows = test[: len(test) // (LENGTH + 1) * (LENGTH + 1)].view(-1, LENGTH + 1)
    with torch.no_grad():
        yield "bits per character", round(bits(model, rows).item(), 3)
    yield "letters", LETTERS
    yield "n_heads", HEADS
    yield from packed(exported(model)).items()
