from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.cases.cases import OPS, OpCase
from benchmarks.cases.programs import Launch, Program, fastest, programs
from toolchain.contract.entries import DEFAULT, committed
from toolchain.contract.op import ops
from toolchain.errors import UsageError
from toolchain.runtime import open_executor

POLICY = committed().policies[DEFAULT]
SPANS = POLICY.spans


class Recorder:
    """A launcher that records its launches."""

    target = None

    def __init__(self) -> None:
        self.executor = open_executor("cpu")
        self.bundle = SimpleNamespace(policy=lambda _: POLICY)
        self.launched: list[tuple[str, str, list[str]]] = []

    def __call__(self, op: str, dtype: str, /, **args: Any) -> None:
        self.launched.append((op, dtype, list(args)))

    def select(self, op: str, dtype: str, /, **args: Any) -> Any:
        del args
        return SimpleNamespace(spec=SimpleNamespace(symbol=f"{op}_{dtype}"))


def inputs(launcher: Any, case: OpCase) -> dict[str, Any]:
    """An array for every input, and more than the op takes."""
    made: dict[str, Any] = {"unused": 1.0}
    for param in ops()[case.op].params:
        if param.role == "scalar":
            made[param.name] = 0.5
        elif all(name in case.dims for name in param.dims) and (param.role == "input" or param.name.endswith("cache")):
            made[param.name] = launcher.executor.empty([case.dims[d] for d in param.dims], param.storage(case.dtype))
    return made


SINGLE = sorted({case.op for case in OPS} - {"decode_attention", "logits"})
SMALL = {"M": 2, "K": 4, "N": 8, "V": 9, "C": 4, "P": 3, "B": 1, "T": 2, "S": 2, "H": 1, "D": 4}


@pytest.mark.parametrize("op", SINGLE)
def test_most_ops_are_one_launch_with_all_that_they_take(op: str) -> None:
    dims = {name: SMALL.get(name, 4) for param in ops()[op].params for name in param.dims}
    case, launcher = OpCase(op, dims), Recorder()
    (program,) = programs(case, launcher, inputs(launcher, case))  # pyright: ignore[reportArgumentType]
    program.run(launcher, "bf16")  # pyright: ignore[reportArgumentType]
    ((launched, dtype, names),) = launcher.launched
    assert (launched, dtype) == (op, "bf16")
    assert sorted(names) == sorted(param.name for param in ops()[op].params)
    (output,) = ops()[op].outputs
    assert program.result.shape == tuple(dims[name] for name in output.dims)
    assert program.entries(launcher, "bf16") == f"{op}_bf16"  # pyright: ignore[reportArgumentType]


def test_logits_are_computed_for_a_padded_vocabulary() -> None:
    case, launcher = OpCase("logits", {"M": 2, "C": 4, "V": 9}), Recorder()
    given = {"x": launcher.executor.empty((2, 4), "bf16"), "padded_weight": launcher.executor.empty((128, 4), "bf16")}
    (program,) = programs(case, launcher, given)  # pyright: ignore[reportArgumentType]
    assert program.result.shape == (2, 9)
    assert program.result.strides == (128, 1)


def test_decoding_attends_at_once_or_in_spans_and_merges_them() -> None:
    case, launcher = OpCase("decode_attention", {"B": 2, "P": 300, "H": 3, "D": 32}), Recorder()
    ways = programs(case, launcher, {})  # pyright: ignore[reportArgumentType]
    merged = [["decode_attention", "merge_attention"]] * len(SPANS)
    assert [[launch.op for launch in way.launches] for way in ways] == [["decode_attention_unsplit"], *merged]
    spans = [way.launches[0].args["partial"].shape for way in ways[1:]]  # pyright: ignore[reportAttributeAccessIssue]
    assert spans == [(2, 3, -(-300 // span), 32) for span in SPANS]
    assert all(way.result.shape == (2, 3, 32) for way in ways)


def test_ways_are_compared_by_their_median() -> None:
    times = {"a": iter([9.0, 1, 9, 9, 9]), "b": iter([5.0, 5, 5, 99, 5])}
    ran: list[str] = []
    ways = [lambda n=n: ran.append(n) for n in "ab"]

    def time_us(way: Any) -> float:
        way()
        return next(times[ran[-1]])

    assert fastest(ways, time_us) == 1
    assert ran[:1] == ["a"]  # once that is not counted
    assert fastest(ways[:1], lambda _: pytest.fail("one way needs no time")) == 0


def test_an_op_of_several_outputs_wants_a_program() -> None:
    case, launcher = OpCase("kv_append", {"B": 1, "T": 1, "H": 1, "D": 4, "P": 2}), Recorder()
    with pytest.raises(UsageError, match="2 outputs"):
        programs(case, launcher, {})  # pyright: ignore[reportArgumentType]


def test_a_program_runs_its_launches_in_order() -> None:
    launcher = Recorder()
    result = launcher.executor.empty((1,), "f32")
    Program([Launch("first", {}), Launch("second", {})], result).run(launcher, "f32")  # pyright: ignore[reportArgumentType]
    assert [op for op, *_ in launcher.launched] == ["first", "second"]
