"""Train the stress finder of chapter 13, right, wrong and simpler.

    cd book && python -m _data.stress_runs right:0 mask_ignored:0-4 right:0:sorted

Each run is a name, a seed and, if its batches are padded to the longest word of each
batch, `sorted`. It takes about 40 seconds and appends one line to stress_runs.jsonl.
"""

import json
import sys
import time
from collections import defaultdict
from pathlib import Path

import torch
import torch.nn.functional as F

import mha.nn
from _data import stress
from _data.stress_words import vowel_groups
from mha import zoo

FOLDER = Path(__file__).parent
STORED = FOLDER / "stress_runs.jsonl"
BATCHES = {"fixed": stress.fixed_batches, "sorted": stress.sorted_batches}
ROUNDING = 1e-4  # of 16 bits, in scores near 1
# What the class StressFinder is called with, other than by default.
OTHERS = {
    "one_head": {"n_heads": 1},
    "one_layer": {"n_layers": 1},
    "dropout": {"dropout": 0.1},
}


class FromTheZoo(mha.nn.MultiHeadAttention):
    """Attend as a member of the zoo does, with the matrices of a layer of mha.nn."""

    member = zoo.right

    def forward(self, X, mask=None, **options):
        weights, n_heads = {}, self.n_heads
        for letter in "QKVO":
            part = getattr(self, f"W_{letter}")
            weights |= {f"W_{letter}": part.weight.T, f"b_{letter}": part.bias}
        return self.member(X, n_heads=n_heads, mask=mask, **weights, **options)


class Fixed(mha.nn.MultiHeadAttention):
    """Mix the values with weights that do not depend on the tokens."""

    def weights(self, X, mask):
        raise NotImplementedError

    def forward(self, X, mask, **options):
        return self.W_O(self.weights(X, mask) @ self.W_V(X))


class Mean(Fixed):
    """Each token gets the plain mean of all letters."""

    def weights(self, X, mask):
        allowed = mask[:, 0].to(X.dtype)
        return allowed / allowed.sum(-1, keepdim=True)


class Itself(Fixed):
    """Each token attends to itself alone."""

    def weights(self, X, mask):
        return torch.eye(X.shape[-2])


def attend_with(model, member):
    """Put a member of the zoo, or another class, in the place of the attention."""
    for layer in model.encoder.layers:
        if isinstance(member, type):
            layer.attention.__class__ = member
        else:
            layer.attention.__class__ = FromTheZoo
            layer.attention.member = member
    return model


def untrained(name):
    """Return the model of a run before its training."""
    model = stress.StressFinder(**OTHERS.get(name, {}))
    if name == "no_positions":
        model.positions.zero_()
    elif name == "learned_positions":
        model.positions = torch.nn.Parameter(0.02 * torch.randn(20, 64))
    elif name in ("mean", "itself"):
        attend_with(model, {"mean": Mean, "itself": Itself}[name])
    elif hasattr(zoo, name) and name != "right":
        attend_with(model, getattr(zoo, name))
    return model


def parts_for(name):
    """Return the words; for one run they are split at random, not by families."""
    pairs = stress.read_words()
    parts = stress.split(pairs)
    if name == "random_split":
        order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0))
        shuffled, start = [pairs[i] for i in order], 0
        for part in parts:
            end = start + len(parts[part])
            parts[part], start = shuffled[start:end], end
    return parts


def one_at_a_time(model, pairs):
    """Return what the model answers for each word alone, without padding."""
    # Words of one length make a batch without padding, which is as good as one by one.
    by_length = defaultdict(list)
    for i, (word, _) in enumerate(pairs):
        by_length[len(word)].append(i)
    found = torch.zeros(len(pairs), dtype=torch.long)
    for rows in by_length.values():
        batch = stress.as_batch([pairs[i] for i in rows])
        found[rows], _ = stress.answers(model, [batch])
    return found


def judged(model, pairs):
    """Return how a model does on the same words, padded in three ways."""
    model.eval()
    targets = torch.tensor([target for _, target in pairs])
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(1))
    mixed = [[pairs[i] for i in rows] for rows in order.split(64)]
    found = {
        "fixed": stress.answers(model, stress.fixed_batches(pairs, 512))[0],
        "alone": one_at_a_time(model, pairs),
        "mixed": torch.empty_like(targets),
    }
    answers, _ = stress.answers(model, map(stress.as_batch, mixed))
    found["mixed"][order] = answers
    batches = list(stress.sorted_batches(pairs, 128))
    by_length = sorted(range(len(pairs)), key=lambda i: len(pairs[i][0]))
    found["sorted"] = torch.empty_like(targets)
    found["sorted"][torch.tensor(by_length)] = stress.answers(model, batches)[0]

    many = torch.tensor([len(vowel_groups(word)) >= 3 for word, _ in pairs])
    right = {name: (letters == targets).float() for name, letters in found.items()}
    facts = {name: round(x.mean().item(), 4) for name, x in right.items()}
    facts["three"] = round(right["fixed"][many].mean().item(), 4)
    same = (found["alone"] == found["fixed"]).float().mean().item()
    return facts | {"same": round(same, 4)}


def run(name, seed, padding="fixed", epochs=stress.EPOCHS):
    """Return a trained model, and what is stored of it."""
    torch.manual_seed(seed)
    began = time.process_time()
    model, parts = untrained(name), parts_for(name)
    stress.train(model, parts, BATCHES[padding], epochs, say=lambda line: None)
    seconds = round(time.process_time() - began)
    facts = {"name": name, "seed": seed, "padding": padding, "epochs": epochs}
    return model, facts | judged(model, parts["test"]) | {"seconds": seconds}


def first_numbers(member, pairs):
    """Return scores, padded and alone, and gradients of a model before its training."""
    torch.manual_seed(0)
    model = attend_with(stress.StressFinder(), member)
    letters, mask, targets = stress.as_batch(pairs, stress.LONGEST)
    padded = model(letters, mask)
    loss = F.cross_entropy(padded, targets)
    slopes = torch.autograd.grad(
        loss, [*model.parameters()], allow_unused=True, materialize_grads=True
    )
    alone = model(*stress.as_batch(pairs[:1])[:2])
    padded = padded[torch.isfinite(padded)]
    return torch.cat([x.detach().flatten() for x in (padded, alone, *slopes)])


def compared():
    """Return the wrong members of the zoo by what they compute on this task."""
    pairs = stress.split(stress.read_words())["test"][:40]
    correct = first_numbers(zoo.right, pairs)
    known, groups = {}, defaultdict(list)
    for member in zoo.WRONG:
        try:
            numbers = first_numbers(member, pairs)
        except (RuntimeError, ValueError):
            groups["raise an error"].append(member.name)
            continue
        far = (numbers - correct).abs().max()
        twins = [name for name, others in known.items() if torch.equal(numbers, others)]
        if far == 0:
            groups["compute the same numbers"].append(member.name)
        elif far < ROUNDING:
            groups["differ by rounding"].append(member.name)
        elif twins:
            groups[f"compute what {twins[0]} computes"].append(member.name)
        else:
            groups["compute something else"].append(member.name)
            known[member.name] = numbers
    return groups


def stored():
    """Return what was stored of all runs."""
    lines = STORED.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def names(runs, padding="fixed"):
    """Return the names of the runs, each once."""
    return [*dict.fromkeys(run["name"] for run in runs if run["padding"] == padding)]


def select(runs, name, padding="fixed"):
    """Return the runs of this name, one for each seed."""
    return [run for run in runs if (run["name"], run["padding"]) == (name, padding)]


def spread(runs, column):
    """Return the mean of a column in per cent, and the lowest and highest."""
    found = [100 * run[column] for run in runs]
    extremes = f"({min(found):.1f}–{max(found):.1f})" if len(found) > 1 else ""
    return f"{sum(found) / len(found):.1f} {extremes:<11}"


def main(specs):
    torch.set_num_threads(1)
    for spec in specs:
        name, seeds, padding, *_ = [*spec.split(":"), "fixed", ""]
        first, _, last = seeds.partition("-")
        for seed in range(int(first), int(last or first) + 1):
            _, facts = run(name, seed, padding)
            print(facts, flush=True)
            with STORED.open("a", encoding="utf-8") as file:
                file.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
