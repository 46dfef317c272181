"""Measure what attention costs, for chapter 17: see __main__.py.

One head of 64 columns in float32, one thread. Every figure comes from a process of its
own, since memory that was used once hides what is used next. Linux only, about ten
minutes and 3.3 GB. `python book/_data/cost.py chunked 2048` prints one figure.
"""

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import mha

STATUS = Path("/proc/self/status")
SIZES = (512, 1024, 2048, 4096, 8192, 16384)
PROCESSES = 3
WIDTH, SMALL, MB = 64, 64, 1e6
ONE_TURN = 0.3  # seconds of calls behind the first, three calls at least


def by_hand(Q, K, V):
    """Return attention as chapter 5 has it by hand, every step a new array."""
    S = Q @ K.T / WIDTH**0.5
    E = np.exp(S - S.max(1, keepdims=True))
    return E / E.sum(1, keepdims=True) @ V


def by_hand_in_float64(Q, K, V):
    """Return the same; NumPy's root is a float64, and so is all that it divides."""
    S = Q @ K.T / np.sqrt(WIDTH)
    E = np.exp(S - S.max(1, keepdims=True))
    return E / E.sum(1, keepdims=True) @ V


def in_place(Q, K, V):
    """Return the same in one array of scores, which each step overwrites."""
    S = (Q / WIDTH**0.5) @ K.T
    S -= S.max(1, keepdims=True)
    np.exp(S, out=S)
    return S @ V / S.sum(1, keepdims=True)


def row_by_row(Q, K, V):
    """Return the same with one row of scores at a time."""
    Y = np.empty_like(Q)
    for i in range(len(Q)):
        Y[i] = in_place(Q[i : i + 1], K, V)[0]
    return Y


@torch.no_grad()
def composed(Q, K, V):
    """Return the same formula in PyTorch."""
    Q, K, V = map(torch.from_numpy, (Q, K, V))
    return ((Q @ K.T / WIDTH**0.5).softmax(-1) @ V).numpy()


@torch.no_grad()
def kernel(Q, K, V, is_causal=False):
    """Return what PyTorch's fused kernel gives, which wants (batch, heads, n, d)."""
    Q, K, V = (torch.from_numpy(x)[None, None] for x in (Q, K, V))
    Y = F.scaled_dot_product_attention(Q, K, V, is_causal=is_causal)
    return Y[0, 0].numpy()


WAYS = {
    "by hand": by_hand,
    "by hand, float64": by_hand_in_float64,
    "in place": in_place,
    "chunked": mha.chunked_attention,
    "chunked, causal": lambda *QKV: mha.chunked_attention(*QKV, is_causal=True),
    "torch composed": composed,
    "torch kernel": kernel,
    "torch kernel, causal": lambda *QKV: kernel(*QKV, is_causal=True),
}


def sizes_of(way):
    """Return the sizes that a way is measured at; float64 would need 6 GB."""
    return SIZES[:-1] if way == "by hand, float64" else SIZES


def draw(n):
    """Return queries, keys and values."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal((n, WIDTH), np.float32) for _ in range(3)]


def measure(way, n):
    """Return the extra memory and the processor time of a way, in this process."""
    attend, QKV = WAYS[way], draw(n)
    attend(*draw(SMALL))  # libraries set themselves up in their first call
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = memory("VmRSS")
    first = seconds(attend, QKV)
    peak, later = memory("VmHWM"), []
    while len(later) < 3 or sum(later) < ONE_TURN:
        later.append(seconds(attend, QKV))
    return {"MB": (peak - before) / MB, "first": first, "later": min(later)}


def seconds(attend, QKV):
    """Return the processor time of one call."""
    start = time.process_time()
    attend(*QKV)
    return time.process_time() - start


def memory(name):
    """Return an entry of the process's status in bytes."""
    text = STATUS.read_text(encoding="ascii")
    return 1024 * int(re.search(rf"^{name}:\s+(\d+) kB", text, re.M)[1])


def measured(way, n):
    """Return `measure` of a process of its own."""
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    line = [sys.executable, __file__, way, str(n)]
    return json.loads(subprocess.check_output(line, env=os.environ | one_thread))


def summary(way, n):
    """Return the median of memory, and the least and the most of both times.

    Other programs can only add to processor time, through the cache they share; so
    the least is the figure, and the most tells how far to trust it.
    """
    runs = [measured(way, n) for _ in range(PROCESSES)]
    found = {"MB": round(statistics.median(run["MB"] for run in runs), 1)}
    for what in ("first", "later"):
        times = [round(run[what], 4) for run in runs]
        found[what] = [min(times), max(times)]
    return found


def where():
    """Return the machine and the versions that the figures hold for."""
    cpu = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", ["none"])
    return {
        "processor": re.search(r"^model name\s*: (.*)", cpu, re.M)[1],
        "vector extensions": found[-1],
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "torch": torch.__version__.partition("+")[0],
    }


def results():
    """Yield the machine, and what each way takes at each size."""
    yield "where", where()
    for way in WAYS:
        for n in sizes_of(way):
            yield f"{way}, n = {n}", summary(way, n)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
