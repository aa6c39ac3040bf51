"""A machine that only measures has PyTorch and no compiler."""

import pkgutil
import subprocess
import sys

import benchmarks.cute

MEASURING = sorted({each.name for each in pkgutil.iter_modules(benchmarks.cute.__path__)} - {"kernels"})
CODE = """
import importlib, sys
from unittest.mock import MagicMock
sys.modules.update(dict.fromkeys(("torch", "benchmarks.peers.pytorch"), MagicMock()))
sys.modules.update(dict.fromkeys(("xdsl", "llvmlite", "cuda.tile"), None))  # as if they were not installed
for name in sys.argv[1:]:
    importlib.import_module(f"benchmarks.cute.{name}")
"""


def test_what_measures_needs_no_compiler() -> None:
    assert "gemm_f8" in MEASURING
    ran = subprocess.run([sys.executable, "-c", CODE, *MEASURING], capture_output=True, text=True, check=False)
    assert not ran.returncode, ran.stderr
