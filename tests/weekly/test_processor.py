"""Another processor, imitated: without vector instructions the last digits differ."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from tests.book.load import ROOT

FOUND = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
PLAIN = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OPENBLAS_CORETYPE": "NEHALEM",
    "NPY_DISABLE_CPU_FEATURES": " ".join(FOUND),
}


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="names of this family"
)
def test_every_stored_output_is_printed_without_vector_instructions():
    command = [sys.executable, "-m", "pytest", "book", "-q", "-n", "2"]
    run = subprocess.run(
        [*command, "--nbval-cell-timeout=600", "-p", "no:cacheprovider"],
        cwd=ROOT, env=os.environ | PLAIN, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-5000:]
    assert " passed" in run.stdout
