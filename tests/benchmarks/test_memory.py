"""How much memory does attention take, beyond what it is given and gives back?"""

import tracemalloc

import numpy as np

import mha

MB = 1e6


def peak(program):
    """Return the largest amount of memory that `program` held at one time."""
    tracemalloc.start()
    try:
        program()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_without_weights_the_scores_of_one_head_are_held_at_a_time():
    """At n = 2048 one head has 16.8 MB of scores and eight have 134 MB."""
    rng = np.random.default_rng(0)
    QKV = [rng.standard_normal((1, 8, 2048, 64), np.float32) for _ in range(3)]
    plain = peak(lambda: mha.scaled_dot_product_attention(*QKV))
    with_weights = peak(
        lambda: mha.scaled_dot_product_attention(*QKV, return_weights=True)
    )
    print(f"\n    {plain / MB:.0f} MB, with weights {with_weights / MB:.0f} MB")
    assert plain <= 40 * MB
    assert with_weights >= 8 * 2048**2 * 4  # the weights themselves: the meter works
