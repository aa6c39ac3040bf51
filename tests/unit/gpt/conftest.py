"""A launcher that computes each op with the eager reference: the model's own wiring can be tested without a kernel."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conformance.reference import eager
from gpt.config import PRESETS, GPTConfig
from gpt.model import GPT
from gpt.parameters.weights import Weights, random_weights
from toolchain.contract.entries import committed
from toolchain.contract.op import ops
from toolchain.contract.policy import Policy
from toolchain.runtime import CpuExecutor, DeviceBuffer
from toolchain.runtime.launch import check_layouts

POLICY = committed().policies["sm_90"]  # the one with all that a policy can have


def _policy(_: str | None) -> Policy:
    return POLICY


class ReferenceLauncher:
    """Checks arguments as a launch does, then runs `conformance.reference.eager` on the buffers."""

    target = None
    borrows_from = ""

    def __init__(self) -> None:
        self.bundle: Any = SimpleNamespace(policy=_policy)
        self.executor = CpuExecutor()
        self.launches: list[tuple[str, str]] = []
        self.lacks = {name for name, op in ops().items() if op.whole}

    @property
    def policy(self) -> Policy:
        return self.bundle.policy(self.target)

    def has(self, op: str, dtype: str, dims: Mapping[str, int]) -> bool:
        del dtype, dims
        return op not in self.lacks

    def __call__(self, op: str, dtype: str, /, **args: Any) -> None:
        self.launches.append((op, dtype))
        check_layouts(op, op, dtype, args)
        buffers = [a for a in args.values() if isinstance(a, DeviceBuffer)]
        self.executor.submit(buffers, lambda: self._compute(op, dtype, args))

    def _compute(self, op: str, dtype: str, args: dict[str, Any]) -> None:
        inputs = {n: a.numpy() if isinstance(a, DeviceBuffer) else a for n, a in args.items()}
        wanted = inspect.signature(getattr(eager, op)).parameters
        taken = {p.name for p in ops()[op].params if p.role != "output"} | set(wanted)
        results = getattr(eager, op)(**{n: a for n, a in inputs.items() if n in taken}, dtype=dtype)
        outputs = [p.name for p in ops()[op].results]
        for name, result in zip(outputs, results if isinstance(results, tuple) else (results,), strict=True):
            args[name].copy_from(np.ascontiguousarray(result))
        if op.startswith("decode_step"):  # all blocks say the same
            logits = args["logits"].numpy()[:, : args["visible"]].astype(np.float32)
            for name, found in (("values", logits.max(1)), ("indices", logits.argmax(1).astype(np.int32))):
                args[name].copy_from(np.repeat(found[:, None], args[name].shape[1], 1))
            if "chosen" in args:
                args["after"].copy_from(args["positions"].numpy() + 1)
                args["chosen"].copy_from(logits.argmax(1).astype(np.int32))


@pytest.fixture
def config() -> GPTConfig:
    return PRESETS["nano"]


@pytest.fixture
def weights(config: GPTConfig) -> Weights:
    return random_weights(config, seed=5)


@pytest.fixture
def launcher() -> ReferenceLauncher:
    return ReferenceLauncher()


@pytest.fixture
def model(config: GPTConfig, weights: Weights, launcher: Any) -> GPT:
    return GPT(config, weights, launcher, "f32")
