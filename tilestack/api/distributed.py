"""Products over several devices: `ts.distributed.matmul(x, w, split="k", devices=2)`.

| split | a rank has | what travels |
|---|---|---|
| `m` | some rows of x, all of w | nothing |
| `n` | all of x, some columns of w | nothing |
| `k` | some columns of x and those rows of w | parts of the result, while the next tile is multiplied |
| `mn` | some rows of x and some columns of w | rows of x, while the rank's own are multiplied |

Without a GPU the ranks run on the CPU, where the interpreter checks what they do to each other's memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolchain.bundles.bundle import Bundle
from toolchain.contract.sources import load_source, packages
from toolchain.errors import LaunchError, UsageError
from toolchain.runtime import DeviceBuffer, Launcher
from toolchain.runtime.launch import check_layouts
from toolchain.runtime.layout import NUMPY
from toolchain.runtime.peers import Peers, SymmetricHeap, open_peers
from toolchain.runtime.peers.group import Graphs

from .bundles.making import make_bundle

Split = Literal["m", "n", "k", "mn"]
OPS: Mapping[str, str] = {"m": "matmul", "n": "matmul", "k": "matmul_reduce_scatter", "mn": "all_gather_matmul"}
DTYPES = ("f32", "f16", "bf16")
Arguments = dict[str, DeviceBuffer | float]


def matmul(
    x: ArrayLike, weight: ArrayLike, *, split: Split = "k", devices: int | Sequence[str] = 2, source: str = "mlir",
    bundle: str | Path | None = None,
) -> NDArray[Any]:  # fmt: skip
    """x (M, K) @ weight (K, N) over several devices, as a numpy array (M, N). See Product, which keeps the weight there
    for more than one product."""
    with Product(weight, split=split, devices=devices, source=source, bundle=bundle) as product:
        return product(x)


class Product:
    """`product(x)` is x @ weight, the weight (K, N) in f32, f16 or bf16 on several devices, as it is split.

    Results are made in f32 and rounded once; with `k` each rank's product is, and their sum. The order of a sum over
    ranks is fixed, so every run gives the same bits. Sizes that the ranks do not divide are filled up with zeros.
    """

    def __init__(
        self, weight: ArrayLike, *, split: Split = "k", devices: int | Sequence[str] = 2, source: str = "mlir",
        bundle: str | Path | None = None,
    ) -> None:  # fmt: skip
        """`split`: see the head of this module. `devices`: how many GPUs, or ranks on the CPU where there is none; or
        their names, "cpu" for all or "cuda:0", "cuda:1", .... `source`: whose kernels, "mlir" or "py". `bundle`: a
        compiled one; without it the kernel is compiled, through the compile cache.

        Raises UsageError for another split, source, dtype or rank of the weight, and what open_peers does.
        """
        if split not in get_args(Split):
            raise UsageError(f"no split {split!r}", hint=f"one of {', '.join(get_args(Split))}")
        if source not in ("mlir", "py"):
            raise UsageError(f"no products over several devices of source {source!r}", hint="mlir or py")
        self._weight = _matrix("weight", weight)
        self.dtype = _dtype_of(self._weight)
        self.split, self.source = split, source
        self._path = None if bundle is None else Path(bundle)
        self._opened = ExitStack()
        self.peers: Peers = self._opened.enter_context(open_peers(devices))
        self._rows = 0  # of x, for which the rest is there
        self._inputs: list[DeviceBuffer] = []
        self._outputs: list[DeviceBuffer] = []
        self._graphs: Graphs | None = None
        self._work: SymmetricHeap | None = None
        try:
            self._weights = [self._upload(rank, part) for rank, part in enumerate(self._parts())]
        except BaseException:
            self._opened.close()
            raise

    def __call__(self, x: ArrayLike) -> NDArray[Any]:
        """x (M, K) @ weight. The first call with so many rows compiles, if there is no bundle, and captures.

        Raises LaunchError for another shape or dtype, and DeviceError that names a rank which did not come.
        """
        given = _matrix("x", x)
        if given.dtype != self._weight.dtype or given.shape[1] != self._weight.shape[0]:
            raise LaunchError(
                f"x is {given.dtype}{list(given.shape)}, the weight {self._weight.dtype}{list(self._weight.shape)}",
                hint="both have one dtype, and x as many columns as the weight has rows",
            )
        if not given.shape[0]:
            return np.empty((0, self._weight.shape[1]), given.dtype)
        if self._graphs is None or self._rows != given.shape[0]:
            self._prepare(given.shape[0])
        assert self._graphs is not None
        for buffer, part in zip(self._inputs, self._pieces(given), strict=True):
            buffer.copy_from(part)
        self.peers.synchronize()  # a rank that begins stores to the others
        self._graphs.replay()
        self.peers.synchronize()
        return self._whole([buffer.numpy() for buffer in self._outputs])[: given.shape[0], : self._weight.shape[1]]

    def close(self) -> None:
        """Frees the devices' memory. A second call does nothing."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What each rank has

    def _each(self, size: int) -> int:
        """A rank's share of a size."""
        return -(-size // self.peers.ranks)

    def _parts(self) -> list[NDArray[Any]]:
        """The weight of each rank, contiguous."""
        k, n = self._weight.shape
        ranks = self.peers.ranks
        if self.split == "m":
            return [self._weight] * ranks
        if self.split == "k":
            return list(_filled(self._weight, (ranks * self._each(k), n)).reshape(ranks, -1, n))
        columns = _filled(self._weight, (k, ranks * self._each(n)))
        return [np.ascontiguousarray(part) for part in np.split(columns, ranks, axis=1)]

    def _pieces(self, x: NDArray[Any]) -> list[NDArray[Any]]:
        """The x of each rank, contiguous."""
        ranks, (m, k) = self.peers.ranks, x.shape
        if self.split == "n":
            return [x] * ranks
        rows = _filled(x, (ranks * self._each(m), k))
        if self.split in ("m", "mn"):
            return list(rows.reshape(ranks, -1, k))
        part = self._each(k)
        wide = _filled(rows, (rows.shape[0], ranks * part)).reshape(ranks, -1, ranks, part)  # (piece, M, rank, K)
        return [np.ascontiguousarray(wide[:, :, rank]) for rank in range(ranks)]

    def _whole(self, outputs: Sequence[NDArray[Any]]) -> NDArray[Any]:
        if self.split in ("m", "k"):
            return np.concatenate(outputs, axis=0)
        return np.concatenate([each.reshape(-1, each.shape[-1]) for each in outputs], axis=1)

    # Launches

    def _upload(self, rank: int, array: NDArray[Any]) -> DeviceBuffer:
        return self.peers.executors[rank].from_numpy(array)

    def _prepare(self, rows: int) -> None:
        """The buffers, the kernel and the graph for so many rows of x."""
        ranks, executors, op = self.peers.ranks, self.peers.executors, OPS[self.split]
        shapes = [piece.shape for piece in self._pieces(np.zeros((rows, self._weight.shape[0]), self._weight.dtype))]
        n = self._weights[0].shape[1]
        m = shapes[0][-2]
        self._inputs = [each.empty(shape, self.dtype) for each, shape in zip(executors, shapes, strict=True)]
        out = (ranks, m, n) if self.split == "mn" else (m, n)
        self._outputs = [each.empty(out, self.dtype) for each in executors]
        arguments: list[Arguments] = [
            {"x": self._inputs[rank], "weight": self._weights[rank], "out": self._outputs[rank]}
            for rank in range(ranks)
        ]
        if op != "matmul":
            name, width = ("arrived", n) if self.split == "k" else ("gathered", shapes[0][-1])
            nbytes = ranks * m * width * NUMPY[self.dtype].itemsize
            work = self._heap(nbytes).empty((ranks, m, width), self.dtype)
            for rank in range(ranks):
                arguments[rank] |= {name: work[rank], **self.peers.arguments(rank, op)}
        launchers = self._launchers(op, arguments[0])
        with self.peers.capture() as graphs:
            for launch, each in zip(launchers, arguments, strict=True):
                launch(op, self.dtype, **each)
        self._graphs, self._rows = graphs, rows

    def _heap(self, nbytes: int) -> SymmetricHeap:
        """What ranks store to each other, instead of what a call with another number of rows had."""
        if self._work is not None:
            self._work.close()
        self._work = self.peers.heap(nbytes)
        return self._work

    def _launchers(self, op: str, arguments: Arguments) -> list[Launcher]:
        executors = self.peers.executors
        made = Bundle.load(self._path) if self._path is not None else self._compiled(op, arguments)
        return [Launcher(made, self.source, executor) for executor in executors]

    def _compiled(self, op: str, arguments: Arguments) -> Bundle:
        """The entry that a launch with these arguments takes. All ranks have arguments of the same shapes."""
        target = self.peers.executors[0].target
        dims, misaligned, gapped = check_layouts(op, op, self.dtype, arguments)
        for spec in load_source(packages()[self.source]).entries():
            fits = (spec.op, spec.dtype) == (op, self.dtype) and (spec.runs_on(target) if target else not spec.targets)
            if fits and spec.unmet(dims, misaligned, gapped) is None:
                return make_bundle([spec], target, self._opened)
        raise UsageError(
            f"no entry of {op} in {self.dtype} fits {dims}", hint="tilestack matrix list shows the entries"
        )


def _matrix(name: str, values: ArrayLike) -> NDArray[Any]:
    array = np.ascontiguousarray(values)
    if array.ndim != 2:
        raise UsageError(f"{name} has the shape {list(array.shape)}: it must be a matrix")
    return array


def _dtype_of(array: NDArray[Any]) -> str:
    for name in DTYPES:
        if NUMPY[name] == array.dtype:
            return name
    raise UsageError(f"a weight of {array.dtype}", hint=f"one of {', '.join(DTYPES)}")


def _filled(array: NDArray[Any], shape: tuple[int, int]) -> NDArray[Any]:
    """With zeros below and to the right, up to a shape."""
    if array.shape == shape:
        return array
    made = np.zeros(shape, array.dtype)
    made[: array.shape[0], : array.shape[1]] = array
    return made
