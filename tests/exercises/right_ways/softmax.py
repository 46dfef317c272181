"""Right answers to the exercises of one chapter, written in other ways."""

import numpy as np
import torch


def softmax_by_logarithms(x, axis):
    return np.exp(x - np.logaddexp.reduce(x, axis, keepdims=True))


def temperature_by_logarithms(gap, n, share):
    rival = (1 - share) / (n - 1)
    return gap / (np.log(share) - np.log(rival))


def inputs(n_q=3, n_k=5):
    rng = np.random.default_rng(7)
    return rng.normal(size=(n_q, 2)), rng.normal(size=(n_k, 2)), rng.normal(size=n_k)


def constants_come_out(attend):
    Q, K, _ = inputs()
    return np.allclose(attend(Q, K, np.full((5, 11), 4.0)), 4.0, rtol=1e-5)


def jacobian_by_einsum(s):
    p = torch.softmax(torch.from_numpy(s), -1)
    return torch.diag_embed(p) - torch.einsum("...i,...j->...ij", p, p)


WAYS = {
    "stable_softmax": (softmax_by_logarithms,),
    "score_for_half": (4.1, 4.099),
    "temperature_for": (temperature_by_logarithms,),
    "rows_law": (constants_come_out,),
    "softmax_jacobian": (jacobian_by_einsum,),
}
