"""How much memory does attention take, beyond what it is given and gives back?"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mha
from tests.samples import peak_memory

MB = 1e6
COST = Path(__file__).parents[2] / "book" / "_data" / "cost.py"


def test_the_plain_function_holds_three_arrays_of_scores_and_chunks_hold_none():
    """At n = 2048 eight heads have 134 MB of scores."""
    rng = np.random.default_rng(0)
    QKV = [rng.standard_normal((1, 8, 2048, 64), np.float32) for _ in range(3)]
    plain = peak_memory(lambda: mha.scaled_dot_product_attention(*QKV))
    chunked = peak_memory(lambda: mha.chunked_attention(*QKV))
    print(f"\n    plain {plain / MB:.0f} MB, chunked {chunked / MB:.0f} MB")
    assert 3 <= plain / (8 * 2048**2 * 4) <= 3.5
    assert chunked <= 8 * MB


def of_a_process(way, n):
    """Return the megabytes that a fresh process needs beyond queries, keys, values."""
    line = [sys.executable, COST, way, str(n)]
    return json.loads(subprocess.check_output(line))["MB"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak anew")
def test_a_long_text_needs_its_answer_and_one_block():
    """At n = 16384 all scores are 1074 MB, the answer 4 MB and a block 1 MB."""
    half, whole = (of_a_process("chunked", n) for n in (8192, 16384))
    print(f"\n    {whole:.1f} MB, {whole / half:.2f} times that of half the text")
    assert whole <= 12
    assert whole / half <= 2.2
    assert of_a_process("in place", 8192) >= 268  # its scores: the meter works
