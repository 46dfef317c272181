"""Let two processes share the heads of a layer, for chapter 17: see __main__.py.

Each holds half of the heads, and nothing in `mha.nn` knows of the other: PyTorch cuts
the matrices and adds the two answers. The result is compared with one process that
holds everything, in float64; ten seconds. `python book/_data/parallel.py FILE` writes
it to another file.
"""

import copy
import json
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from mha.nn import Encoder, MultiHeadAttention

PROCESSES, HEADS, D_MODEL, D_FF, BATCH, N = 2, 6, 24, 44, 4, 7


def share_heads(attention, mesh):
    """Give each process some heads: columns of W_Q, W_K and W_V, and rows of W_O.

    PyTorch's words count the axes of our X @ W, though it stores the transpose.
    """
    plan = {name: ColwiseParallel() for name in ("W_Q", "W_K", "W_V")}
    parallelize_module(attention, mesh, plan | {"W_O": RowwiseParallel()})


def share_encoder(encoder, mesh):
    """Share the heads of every layer, and the hidden columns of feed-forward."""
    for layer in encoder.layers:
        share_heads(layer.attention, mesh)
        plan = {"W_1": ColwiseParallel(), "W_2": RowwiseParallel()}
        parallelize_module(layer, mesh, plan)


def draw(*shape, seed):
    """Return the same numbers in every process."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def tokens():
    """Return tokens, one mask for all heads, and how much each output matters."""
    X, matters = (draw(BATCH, N, D_MODEL, seed=seed) for seed in (0, 1))
    mask = draw(BATCH, 1, N, N, seed=2) > 0
    mask[0, :, 3] = False  # one token may look at nothing
    return X, mask, matters


def run(module, X, matters, **options):
    """Return the output and all gradients of Σ output · matters, that of X first."""
    module.zero_grad()
    X = X.clone().requires_grad_()
    Y = module(X, **options)
    (Y * matters).sum().backward()
    found = [Y.detach(), X.grad, *(p.grad for p in module.parameters())]
    return [x.full_tensor() if hasattr(x, "full_tensor") else x for x in found]


def apart(ours, theirs):
    """Return the largest difference in any of the processes."""
    pairs = zip(ours, theirs, strict=True)
    worst = torch.stack([(x - y).detach().abs().max() for x, y in pairs]).max()
    dist.all_reduce(worst, dist.ReduceOp.MAX)
    return worst.item()


def differences(ours, theirs):
    """Return those of the output and of the gradients."""
    output = apart(ours[:1], theirs[:1])
    return {"output": output, "gradients": apart(ours[1:], theirs[1:])}


def sums(module, X):
    """Return how often the processes add up something, in a call and in gradients."""
    with CommDebugMode() as call:
        Y = module(X.clone().requires_grad_())
    with CommDebugMode() as gradients:
        Y.sum().backward()
    return call.get_total_counts(), gradients.get_total_counts()


def shared_heads(mesh):
    """Compare a layer whose heads are shared."""
    torch.manual_seed(0)
    alone = MultiHeadAttention(D_MODEL, HEADS, dtype=torch.float64)
    layer, (X, mask, matters) = copy.deepcopy(alone), tokens()
    share_heads(layer, mesh)
    A, A_alone = (each(X, return_weights=True)[1] for each in (layer, alone))
    mine = A_alone.chunk(PROCESSES, dim=1)[mesh.get_local_rank()]
    report = {
        f"{name} in each process": getattr(layer, name).weight.to_local().T.shape
        for name in ("W_Q", "W_O")
    }
    report |= {"heads in each process": A.shape[1], "weights": apart([A], [mine])}
    report["sums in a call"], report["sums in its gradients"] = sums(layer, X)
    ways = {"no mask": {}, "causal": {"is_causal": True}, "mask": {"mask": mask}}
    for way, options in ways.items():
        theirs = run(alone, X, matters, **options)
        report[f"heads, {way}"] = differences(run(layer, X, matters, **options), theirs)
    return report


def shared_encoder(mesh):
    """Compare an encoder whose heads and hidden columns are shared."""
    torch.manual_seed(0)
    alone = Encoder(2, D_MODEL, HEADS, D_FF, final_norm=True, dtype=torch.float64)
    encoder, (X, mask, matters) = copy.deepcopy(alone), tokens()
    share_encoder(encoder, mesh)
    ours = run(encoder, X, matters, mask=mask)
    report = {"encoder": differences(ours, run(alone, X, matters, mask=mask))}
    names = "sums in a call of a layer", "sums in the gradients of a layer"
    return report | dict(zip(names, sums(encoder.layers[0], X), strict=True))


def work(rank, folder, store):
    """Be one of the processes; the first one writes the report."""
    meet = Path(folder, "meet").as_uri()
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=PROCESSES)
    torch.set_num_threads(1)
    mesh = init_device_mesh("cpu", (PROCESSES,))
    report = {"processes": PROCESSES, "heads": HEADS}
    report |= shared_heads(mesh) | shared_encoder(mesh)
    if rank == 0:
        Path(store).write_text(json.dumps(report), encoding="utf-8")
    dist.destroy_process_group()


def main(store):
    """Start the processes and wait; a copy of this one has PyTorch already."""
    way = "fork" if sys.platform == "linux" else "spawn"
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.start_processes(
            work, (folder, str(store)), PROCESSES, start_method=way
        )


def results():
    """Yield what the processes report."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "report.json")
        main(store)
        yield from json.loads(store.read_text(encoding="utf-8")).items()


if __name__ == "__main__":
    main(sys.argv[1])
