from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilestack as ts

NAMES = iter(range(1000))


def name() -> str:
    """An operator cannot be registered twice."""
    return f"tilestack_tests::op{next(NAMES)}"


@pytest.mark.needs("torch")
def test_an_operator_allocates_its_outputs(scaled: Path) -> None:
    import torch

    rows = {"grid": lambda x, _: x.shape[0], "outputs": {"out": lambda x, _: torch.empty_like(x)}}
    operator = ts.load(scaled).as_torch_op(name(), **rows)
    x = torch.arange(12.0).reshape(3, 4)
    assert torch.equal(operator(x, 2.0), 2 * x)
    torch.library.opcheck(operator, (x, 2.0))
    compiled = torch.compile(lambda x: operator(x, 2.0) + 1, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), 2 * x + 1)


@pytest.mark.needs("torch")
def test_an_operator_that_works_in_place(add_one: Path) -> None:
    import torch

    operator = ts.torch_op(name(), ts.load(add_one), grid=lambda *_: 1, outputs={}, updates=["x"])
    x = torch.zeros(3)
    assert operator(x, 3) is None
    assert x.tolist() == [1, 0, 0]
    torch.library.opcheck(operator, (x, 3))


@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outputs": {"y": lambda x, _: x}}, "takes no array 'y'"),
        ({"outputs": {"out": lambda x: x}}, r"outputs\['out'\] of .*: it is called with x, factor"),
        ({"outputs": {"out": lambda x, _: x}, "grid": lambda _: 1}, "grid of .*: it is called with x, factor"),
        ({"outputs": {}}, "neither outputs nor updates"),
        (
            {"outputs": {"out": lambda x, _: x}, "numbers": {"factor": float}},
            "numbers= is for the arguments of a cuTile function",
        ),
    ],
)
def test_what_cannot_be_an_operator(scaled: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ts.UsageError, match=message):
        ts.torch_op(name(), ts.load(scaled), **options)


@pytest.mark.needs("torch")
def test_a_write_that_is_not_declared(scaled: Path) -> None:
    import torch

    operator = ts.torch_op(name(), ts.load(scaled), grid=lambda *_: 1, outputs={"x": lambda *_: torch.ones(1, 4)})
    with pytest.raises(ts.LaunchError, match="scaled writes out, which is neither"):
        operator(2.0, torch.ones(1, 4))


@pytest.mark.needs("torch")
def test_a_name_without_namespace(scaled: Path) -> None:
    with pytest.raises(ts.UsageError, match="not an operator's name"):
        ts.load(scaled).as_torch_op("scaled", outputs={"out": lambda x, _: x})


def test_without_pytorch_it_says_so(scaled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ts.ToolchainError, match="an operator of PyTorch needs the package torch"):
        ts.load(scaled).as_torch_op(name(), outputs={"out": lambda x, _: x})
    x = np.ones((1, 4), np.float32)
    ts.load(scaled)[1](x, 2.0, x, on="cpu")  # everything else works
