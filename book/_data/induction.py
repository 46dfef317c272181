"""Train small models to copy what they have read, for chapter 14: see __main__.py.

A text is a random order of 5 to 12 letters, repeated. From the second time on, the next
letter is the one that followed the last letter before. About ten minutes on one core.
"""

import torch
from torch import nn

from _data.digits import without_heads
from mha.nn import Encoder

SEEDS = range(5)
LETTERS, LENGTH, WIDTH = 16, 24, 32
STEPS, BATCH, RATE = 500, 64, 5e-3
SHORTEST, LONGEST = 5, 12


def texts(rows, seed, period=None):
    """Return texts (rows, LENGTH), and after how many letters each begins again."""
    draw = torch.Generator().manual_seed(seed)
    periods = torch.randint(SHORTEST, LONGEST + 1, (rows, 1), generator=draw)
    if period is not None:
        periods = torch.full((rows, 1), period)
    orders = torch.rand(rows, LETTERS, generator=draw).argsort(-1)
    return orders.gather(1, torch.arange(LENGTH) % periods), periods


class Copier(nn.Module):
    """Read letters, and guess at each place which one comes next."""

    def __init__(self, n_heads):
        super().__init__()
        self.embed = nn.Embedding(LETTERS, WIDTH)
        self.places = nn.Parameter(0.3 * torch.randn(LENGTH, WIDTH))
        self.encoder = Encoder(
            2, WIDTH, n_heads, 2 * WIDTH, norm_first=True, final_norm=True
        )
        self.guess = nn.Linear(WIDTH, LETTERS)

    def tokens(self, letters):
        return self.embed(letters) + self.places[: letters.shape[1]]

    def forward(self, letters):
        return self.guess(self.encoder(self.tokens(letters), is_causal=True))


def train(n_heads, seed, steps=STEPS, first_attends=True):
    """Train a model, or a control in which the attention of layer 1 is held at 0."""
    torch.manual_seed(seed)
    model = Copier(n_heads)
    if not first_attends:
        for x in model.encoder.layers[0].attention.W_O.parameters():
            nn.init.zeros_(x).requires_grad_(False)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    for step in range(steps):
        rate = min(1, (step + 1) / 50) * (1 - step / steps)  # up, then slowly down
        optimiser.param_groups[0]["lr"] = RATE * rate + 1e-5
        letters, _ = texts(BATCH, seed * 10_000 + step)
        logits = model(letters[:, :-1]).transpose(1, 2)
        loss = nn.functional.cross_entropy(logits, letters[:, 1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval()


@torch.no_grad()
def accuracy(model, rows=1000, seed=1_000_000):
    """Return the share of right guesses where the text has begun again."""
    letters, periods = texts(rows, seed)
    right = model(letters[:, :-1]).argmax(-1) == letters[:, 1:]
    return right[torch.arange(1, LENGTH) > periods].float().mean().item()


@torch.no_grad()
def maps(model, rows=400, seed=1_000_000):
    """Return the texts, their periods, and the weights of each layer."""
    letters, periods = texts(rows, seed)
    _, found = model.encoder(model.tokens(letters), is_causal=True, return_weights=True)
    return letters, periods, found


def habits(model):
    """Return the mean weights that the first head gives to the letter before, and the
    last head to the letters that followed the same letter earlier.
    """
    _, periods, found = maps(model)
    query, key = torch.arange(LENGTH)[:, None], torch.arange(LENGTH)
    before = (query - key == 1) & (query < periods[..., None])
    follows = ((query - key + 1) % periods[..., None] == 0) & (key <= query) & (key > 0)
    again = torch.arange(LENGTH) >= periods
    first, last = found[0][:, 0], found[-1][:, -1]
    return (
        first[before].mean().item(),
        (last * follows).sum(-1)[again].mean().item(),
    )


@torch.no_grad()
def patched(model, rows=400, seed=2_000_000):
    """Return how often the last guess is right: as it is, with the first occurrence of
    the last letter replaced, and then with one row of attention put back.

    The row is what the attention of layer 1 returns after the replaced letter, taken
    from the run that was not changed; for comparison, the row one place further on.
    Then, how often a row from a text with the letter elsewhere moves the guess there,
    and how often the guess is right, with the first row put back, if the text ends in
    another letter: a row that says "before me stood k" should not matter to it.
    """
    letters, _ = texts(rows, seed, period=LONGEST)
    read, wanted = letters[:, :-1], letters[:, -1]
    place = LENGTH - 2 - LONGEST  # of the letter that is the last one here
    unused = (torch.arange(LETTERS) == read[..., None]).any(1).int().argmin(-1)
    changed = read.clone()
    changed[:, place] = unused
    elsewhere = changed.clone()
    elsewhere[:, place // 2] = read[:, -1]
    another = changed.clone()
    another[:, -1] = read[:, place // 2]
    attention = model.encoder.layers[0].attention

    def share(which, hook=None, answer=wanted):
        handle = attention.register_forward_hook(hook) if hook else None
        guess = model(which)[:, -1].argmax(-1)
        if handle:
            handle.remove()
        return (guess == answer).float().mean().item()

    def put(row, source):
        """Return a hook that puts one row from the run on source into another run."""
        kept = []
        share(source, lambda *of: kept.append(of[-1]))

        def hook(module, args, output):
            output = output.clone()
            output[:, row] = kept[0][:, row]
            return output

        return hook

    there = place // 2 + 1
    return [
        share(read),
        share(changed),
        share(changed, put(place + 1, read)),
        share(changed, put(place + 2, read)),
        share(changed, put(there, elsewhere), answer=read[:, there]),
        share(another, put(place + 1, read), answer=read[:, there]),
    ]


def run(seed):
    """Return the accuracies of one seed by name."""
    model = train(1, seed)
    found = {"a head in each layer": accuracy(model)}
    for layer in (0, 1):
        without = without_heads(model, [(layer, 0)])
        found[f"without the head of layer {layer + 1}"] = accuracy(without)
    found["before, follows"] = habits(model)
    found["patched"] = patched(model)
    for name, steps in (("control", STEPS), ("control, longer", 3 * STEPS)):
        found[name] = accuracy(train(2, seed, steps, first_attends=False))
    return found


def results():
    runs = [run(seed) for seed in SEEDS]
    for name in runs[0]:
        yield name, [found[name] for found in runs]
