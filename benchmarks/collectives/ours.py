"""Our collectives: one process with all GPUs, one graph a rank. A result is compared before it is timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.errors import ConformanceError, DeviceError, TilestackError
from toolchain.runtime import DeviceBuffer
from toolchain.runtime.launch import EntryLauncher, check_layouts
from toolchain.runtime.peers import Peers, SymmetricHeap

from .cases import COLLECTIVES, ITEM, SIZES, Row, launches, row, samples

Array = NDArray[np.generic]
DTYPE, SIDE = "bf16", "ours"
OPS = {"all_reduce": ("all_reduce", "all_reduce_two_shot")}  # of a collective; the others have one of their name
SEEN = 1 << 20  # elements at either end of a result that are compared


def measure(
    bundle: Bundle, peers: Peers, source: str, *, sizes: Sequence[int] = SIZES,
    collectives: Sequence[str] = COLLECTIVES, every_entry: bool = False, say: Callable[[Row], object] = print,
) -> list[Row]:  # fmt: skip
    """A row for each collective, op and size: of the entry that a launch takes, or of `every_entry` that fits. Rows of
    entries that are wrong or do not run have an error. Raises DeviceError if a GPU is lost."""
    rows: list[Row] = []
    for collective in collectives:
        for op in OPS.get(collective, (collective,)):
            for nbytes in sizes:
                for found in _of_size(bundle, peers, source, collective, op, nbytes, every_entry=every_entry):
                    rows.append(found)
                    say(found)
    return rows


def _of_size(
    bundle: Bundle, peers: Peers, source: str, collective: str, op: str, nbytes: int, *, every_entry: bool
) -> Iterator[Row]:
    heap = peers.heap((2 * peers.ranks + 1) * nbytes + 4096)
    try:
        arguments, parts = _arguments(op, nbytes // ITEM, peers, heap)
        for entry in _entries(bundle, source, op, arguments[0], peers, every_entry=every_entry):
            symbol = entry.spec.symbol
            try:
                yield row(SIDE, collective, nbytes, symbol, _timed(bundle, entry, peers, arguments, op, parts, nbytes))
            except ConformanceError as error:
                yield Row(SIDE, collective, nbytes, symbol, error=str(error))
    finally:
        for executor in peers.executors:
            executor.synchronize()
        heap.close()


def _arguments(
    op: str, elements: int, peers: Peers, heap: SymmetricHeap
) -> tuple[list[dict[str, DeviceBuffer | float]], Array]:
    """Each rank's arguments but for the channel, and what the ranks put in: (R, elements)."""
    ranks = peers.ranks
    rng = np.random.default_rng(elements)
    own = elements // ranks if op == "all_gather" else elements
    parts = rng.standard_normal((ranks, own), np.float32).astype(ml_dtypes.bfloat16)
    shape = (ranks, own // ranks) if op == "reduce_scatter" else (own,)
    inside = heap.empty(shape, DTYPE)
    if op == "all_reduce_two_shot":
        outside = heap.empty((elements,), DTYPE)
    else:
        made = {"all_gather": (ranks, own), "reduce_scatter": (elements // ranks,)}.get(op, (elements,))
        outside = [executor.empty(made, DTYPE) for executor in peers.executors]
    for rank, buffer in enumerate(inside):
        buffer.select(0, rank).copy_from(parts[rank].reshape(shape))
    root = {"root": 0} if op == "broadcast" else {}
    return [{"parts": a, "out": b, **root} for a, b in zip(inside, outside, strict=True)], parts


def _entries(
    bundle: Bundle, source: str, op: str, arguments: Mapping[str, DeviceBuffer | float], peers: Peers, *,
    every_entry: bool,
) -> list[BundleEntry]:  # fmt: skip
    whole = {**arguments, **peers.arguments(0)}
    target = peers.executors[0].target
    dims, misaligned, gapped = check_layouts(op, op, DTYPE, whole)
    if not every_entry:
        return [bundle.select(source, op, DTYPE, dims, misaligned, gapped, target)]
    own = bundle.entries_of(source, op, DTYPE)
    return [e for e in own if e.spec.runs_on(target) and not e.spec.unmet(dims, misaligned, gapped)]


def _timed(
    bundle: Bundle, entry: BundleEntry, peers: Peers, arguments: Sequence[Mapping[str, DeviceBuffer | float]],
    op: str, parts: Array, nbytes: int,
) -> list[float]:  # fmt: skip
    """Samples of one launch in µs. Raises ConformanceError for a wrong result and for what does not launch."""
    count = launches(nbytes)
    launchers = [EntryLauncher(executor) for executor in peers.executors]
    for each in arguments:
        out = each["out"]
        assert isinstance(out, DeviceBuffer)
        out.fill(-1)
    for executor in peers.executors:
        executor.synchronize()
    try:
        with peers.capture() as graphs:
            for _ in range(count):
                for rank, launch in enumerate(launchers):
                    launch(bundle, entry, {**arguments[rank], **peers.arguments(rank)})
    except DeviceError:
        raise
    except TilestackError as error:
        raise ConformanceError(f"{type(error).__name__}: {error.args[0]}") from error

    def once() -> float:
        starts = [executor.record() for executor in peers.executors]
        graphs.replay()
        ends = [executor.record() for executor in peers.executors]
        for executor in peers.executors:
            executor.synchronize()
        return min(end.us_since(start) for start, end in zip(starts, ends, strict=True)) / count

    once()
    peers.synchronize()
    for rank, each in enumerate(arguments):
        _compare(op, rank, each["out"], parts)
    found = samples(once)
    peers.synchronize()
    return found


def _compare(op: str, rank: int, out: object, parts: Array) -> None:
    """At both ends of a rank's result, bit for bit: a sum of ranks is made in f32, pairs first, and rounded once."""
    assert isinstance(out, DeviceBuffer)
    own = out.select(0, rank) if op == "all_reduce_two_shot" else out
    got = own.numpy().reshape(-1)
    wanted = _wanted(op, rank, parts)
    for part in (slice(None, SEEN), slice(-SEEN, None)):
        if not np.array_equal(got[part].view(np.uint16), wanted(part).view(np.uint16)):
            raise ConformanceError(f"rank {rank} has a wrong result")


def _wanted(op: str, rank: int, parts: Array) -> Callable[[slice], Array]:
    if op == "broadcast":
        return lambda part: parts[0][part]
    if op == "all_gather":
        flat = parts.reshape(-1)
        return lambda part: flat[part]
    each = parts.reshape(len(parts), len(parts), -1)[:, rank] if op == "reduce_scatter" else parts

    def total(part: slice) -> Array:
        pieces = [row[part].astype(np.float32) for row in each]
        pairs = [sum(pieces[first : first + 2]) for first in range(0, len(pieces), 2)]
        return np.asarray(sum(pairs), np.float32).astype(ml_dtypes.bfloat16)

    return total
