"""The conformance cases catch the kernel bugs that people write, and pass the kernels without them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import kernels_mlir
from gpt.conformance.cases import CASES
from gpt.conformance.result import Row
from gpt.conformance.run import run_ops
from toolchain.bundle import Bundle
from toolchain.entry import EntrySpec
from toolchain.errors import TilestackError
from toolchain.runtime import open_executor
from toolchain.tileir import bytecode, specialize


def _table() -> ModuleType:
    path = Path(__file__).with_name("mutations.py")
    spec = importlib.util.spec_from_file_location("mutations", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    __import__("sys").modules["mutations"] = module
    spec.loader.exec_module(module)
    return module


MUTATIONS = _table().MUTATIONS
DTYPE = "f32"  # the tightest bounds
LARGEST = 1_000_000  # elements of an operand: the small cases must do


def small_cases(op: str) -> list:
    """The op's CPU cases that the interpreter runs fast: a bug must show at small odd sizes."""

    def size(dims: dict[str, int]) -> int:
        return dims.get("M", 1) * dims.get("K", 1) * dims.get("N", 1)

    return [c for c in CASES if c.op == op and not c.gpu_only and size(dict(c.dims)) < LARGEST]
