"""Arguments of a launch that lie in the host's memory, in a program that `tilestack run` runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.knobs import ROOT

PROGRAM = """
import dataclasses
import cuda.tile as ct
import numpy as np

class Foreign:
    # An array of another library, which gives it by DLPack.
    def __init__(self, array):
        self.array = array
    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__()
    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

@dataclasses.dataclass(frozen=True)
class Scale:
    factor: float
    more: int = 1

HALF = Scale(0.5)

@ct.kernel
def added(pair, more):
    i = ct.bid(0)
    total = ct.load(pair[0], index=(i,), shape=(16,)) + ct.load(more, index=(i,), shape=(16,))
    ct.store(pair[1], index=(i,), tile=HALF.factor * Scale(4.0, 3).factor * total)

x = np.arange(32, dtype=np.float32)
y, z = np.ones(32, np.float32), np.zeros(64, np.float32)
ct.launch(0, (2,), added, ((Foreign(x), Foreign(z[::2])), y))
assert (z[::2] == 2 * (x + 1)).all() and not z[1::2].any(), z
print("right")
ct.launch(0, (2,), added, ((x, HALF), y))
"""


@pytest.mark.needs("interpreter")
def test_arrays_by_dlpack_in_tuples_and_dataclasses_in_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [sys.executable, "-m", "tilestack", "run", str(tmp_path / "program.py")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stdout == "right\n", done.stderr
    assert done.stderr.endswith("Objects of type 'Scale' are not supported.\n")  # cuTile's own words
    assert done.returncode == 1
