"""An op as our model launches it. Mostly that is one kernel; attention in decoding may be two, spans and their
merge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from toolchain.contract.op import ops
from toolchain.errors import UsageError
from toolchain.runtime import DeviceBuffer, Launcher

from .cases import OpCase

Value = DeviceBuffer | float


@dataclass(frozen=True)
class Launch:
    """One launch of `op` with all its arguments."""

    op: str
    args: Mapping[str, Value]


@dataclass(frozen=True)
class Program:
    """The launches that compute one result, in order, and the buffer that holds it afterwards."""

    launches: Sequence[Launch]
    result: DeviceBuffer

    def run(self, launcher: Launcher, dtype: str) -> None:
        for launch in self.launches:
            launcher(launch.op, dtype, **launch.args)

    def entries(self, launcher: Launcher, dtype: str) -> str:
        """The names of the kernels that these launches choose."""
        return ", ".join(launcher.select(one.op, dtype, **one.args).spec.symbol for one in self.launches)


def launched_ops(op: str) -> tuple[str, ...]:
    """The ops that the programs of a case of `op` launch."""
    return (op, "decode_attention_unsplit", "merge_attention") if op == "decode_attention" else (op,)


def programs(case: OpCase, launcher: Launcher, inputs: Mapping[str, Value]) -> list[Program]:
    """The ways to launch a case; the fastest one is reported as ours. There are several if the caller chooses how to
    split the work. Raises UsageError if the case does not state a size that the op needs."""
    if case.op == "decode_attention":
        whole = _whole_attention(case, launcher, inputs)
        spans = launcher.bundle.policy(launcher.target).spans
        return [whole, *(_decode_attention(case, launcher, inputs, span) for span in spans)]
    if case.op == "logits":
        return [_logits(case, launcher, inputs)]
    return [_single(case, launcher, inputs)]


def _single(case: OpCase, launcher: Launcher, inputs: Mapping[str, Value]) -> Program:
    spec = ops()[case.op]
    if len(spec.outputs) != 1:
        raise UsageError(
            f"{case.op} has {len(spec.outputs)} outputs",
            hint="write a separate program for it in benchmarks/cases/programs.py",
        )
    out = _empty(launcher, case, spec.outputs[0].name, {})
    args = {**_named(case.op, inputs), spec.outputs[0].name: out}
    return Program([Launch(case.op, args)], out)


def _logits(case: OpCase, launcher: Launcher, inputs: Mapping[str, Value]) -> Program:
    """Logits with a padded vocabulary, as in the model; the padding is not part of the result."""
    weight = inputs["padded_weight"]
    if not isinstance(weight, DeviceBuffer):
        raise UsageError(f"{case.name}: no padded weight")
    out = launcher.executor.empty((case.dims["M"], weight.shape[0]), case.dtype)
    args: dict[str, Value] = {"x": inputs["x"], "weight": weight, "out": out}
    return Program([Launch(case.op, args)], out.slice(1, 0, case.dims["V"]))


def _whole_attention(case: OpCase, launcher: Launcher, inputs: Mapping[str, Value]) -> Program:
    """Attention in decoding without spans. The new token's key and value are already in the cache at its position."""
    out = launcher.executor.empty([case.dims[name] for name in "BHD"], case.dtype)
    op = "decode_attention_unsplit"
    return Program([Launch(op, {**_named(op, inputs), "out": out})], out)


def _decode_attention(case: OpCase, launcher: Launcher, inputs: Mapping[str, Value], span: int) -> Program:
    """Attention in decoding over spans of the cache, and the merge of their results."""
    spans = {"Z": -(-case.dims["P"] // span), "TWO": 2}
    partial, stats = (_empty(launcher, case, name, spans) for name in ("partial", "stats"))
    first = {**_named(case.op, inputs), "partial": partial, "stats": stats}
    out = launcher.executor.empty([case.dims[name] for name in "BHD"], case.dtype)
    second: dict[str, Value] = {"partial": partial, "stats": stats, "out": out}
    return Program([Launch(case.op, first), Launch("merge_attention", second)], out)


def _named(op: str, inputs: Mapping[str, Value]) -> dict[str, Value]:
    """The inputs of an op, and the caches that it writes to."""
    return {param.name: inputs[param.name] for param in ops()[op].params if param.name in inputs}


def _empty(launcher: Launcher, case: OpCase, name: str, also: Mapping[str, int]) -> DeviceBuffer:
    """An output of the case's op."""
    param = next(p for p in ops()[case.op].params if p.name == name)
    sizes = {**case.dims, **also}
    if unknown := [dim for dim in param.dims if dim not in sizes]:
        raise UsageError(f"{case.name}: {name} has sizes {', '.join(unknown)}, which the case does not name")
    return launcher.executor.empty([sizes[dim] for dim in param.dims], param.storage(case.dtype))


def fastest(
    ways: Sequence[Callable[[], object]], time_us: Callable[[Callable[[], object]], float], tries: int = 5
) -> int:
    """The index of the way with the least median time, after one run that is not counted."""
    if len(ways) == 1:
        return 0
    medians: list[float] = []
    for way in ways:
        way()
        medians.append(sorted(time_us(way) for _ in range(tries))[tries // 2])
    return min(range(len(ways)), key=lambda index: medians[index])
