"""Runs a recorded cell: on a GPU from its cubins, or on the interpreter from its bytecode."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from conformance.ops.compare import Verdict, loosest
from toolchain.contract.launching import DTYPES
from toolchain.errors import BundleError, NotInterpretable
from toolchain.runtime import DeviceBuffer, Executor
from toolchain.runtime.driver import choose_target
from toolchain.runtime.modules import get_function, load_module
from toolchain.runtime.packing import Packed, number
from toolchain.runtime.tensor_maps import describe

from .problem import Array
from .recording import Cell, Kept, Launch, Recording
from .sampled import judge

if TYPE_CHECKING:
    from toolchain.runtime.cuda import CudaExecutor

WORD = np.dtype(np.int32)  # buffers hold bytes, in whole words
_NUMPY = {dtype.name: dtype for dtype in DTYPES.values()}  # also of those that numpy itself lacks


class Played:
    """A cell on an executor, with memory of its own. `run` launches it once. Raises WrongTarget for a GPU that the
    recording has no cubins for, and BundleError."""

    def __init__(self, executor: Executor, recording: Recording, cell: Cell, loaded: dict[str, Any]) -> None:
        """`loaded`: the modules that other cells on the executor have loaded, by their files."""
        self.cell, self._executor, self._recording = cell, executor, recording
        problem = recording.problem(cell)
        self.case = problem.case
        self._outputs = problem.outputs()
        before = [self._before(kept, problem.inputs) for kept in cell.arrays]
        self._buffers = [_placed(executor, array) for array in before]
        # What a kernel writes into memory that is no output has to be set again before the next run.
        reset = [at for at, kept in enumerate(cell.arrays) if kept.written and kept.name not in self._outputs]
        self._again = [(self._buffers[at], _placed(executor, before[at])) for at in reset]
        self._tables: list[DeviceBuffer] = []
        start = self._on_gpu if executor.kind == "cuda" else self._interpreted
        self._steps = [start(launch, loaded) for launch in cell.launches]

    @property
    def nbytes(self) -> int:
        return sum(buffer.nbytes for buffer in self._buffers)

    def run(self) -> None:
        for buffer, pristine in self._again:
            buffer.copy_from(pristine)
        for step in self._steps:
            step()

    def poison(self) -> None:
        """Fill the outputs with what no kernel should write."""
        for at, kept in enumerate(self.cell.arrays):
            if kept.name in self._outputs:
                self._buffers[at].copy_from(_words(self._outputs[kept.name]))

    def check(self) -> Verdict:
        """The verdict on the outputs as they are. Raises ConformanceError."""
        self._executor.synchronize()
        verdicts: list[Verdict] = []
        for at, kept in enumerate(self.cell.arrays):
            if kept.name not in self._outputs:
                continue
            empty = self._outputs[kept.name]
            data = self._buffers[at].numpy().tobytes()[: empty.nbytes]
            result = np.frombuffer(data, empty.dtype).reshape(empty.shape)
            what = f"{self.case}: {kept.name}"
            verdicts.append(judge(what, result, self.cell.expected[kept.name], self._recording))
        return loosest(verdicts)

    def _before(self, kept: Kept, inputs: Mapping[str, Array]) -> Array:
        if kept.name in inputs:
            return inputs[kept.name]
        if kept.name:
            return self._outputs[kept.name]
        return np.frombuffer(self._recording.read(kept.content), _NUMPY[kept.dtype]).reshape(kept.shape)

    def _on_gpu(self, launch: Launch, loaded: dict[str, Any]) -> Callable[[], object]:
        gpu: CudaExecutor = self._executor  # pyright: ignore[reportAssignmentType] - by its kind
        target = choose_target(gpu.gpu, launch.cubins, launch.symbol)
        name, doing = launch.cubins[target], f"loading {launch.symbol}"
        if name not in loaded:
            loaded[name] = load_module(gpu, self._recording.read(name), doing, target)
        handle = get_function(gpu, loaded[name], launch.symbol, launch.form.shared_bytes, doing)
        slots = [self._slot(parameter) for parameter in launch.parameters]
        for made, row in zip(launch.form.maps, launch.maps, strict=True):
            address = self._buffers[row["array"]].pointer
            slots.append(gpu.encode(describe(made, row["dtype"], address, row["shape"], row["strides"])))
        packed = Packed(slots)
        form = launch.form
        config = gpu.launch_config(launch.grid, form.block, form.shared_bytes, together=form.together)
        what = f"{launch.symbol} with grid {launch.grid}"
        return lambda: gpu.launch(config, (handle, packed.address), what)

    def _slot(self, parameter: Mapping[str, Any]) -> bytes:
        if "number" in parameter:
            return number(*parameter["number"])
        if "array" in parameter:
            return self._buffers[parameter["array"]].pointer.to_bytes(8, "little")
        rows = [(self._buffers[row["array"]].pointer, *row["numbers"]) for row in parameter["table"]]
        self._tables.append(_placed(self._executor, np.array(rows, np.int64)))
        return self._tables[-1].pointer.to_bytes(8, "little")

    def _interpreted(self, launch: Launch, loaded: dict[str, Any]) -> Callable[[], object]:
        if launch.form.kind != "tile-ir":
            raise NotInterpretable(f"{launch.symbol} is {launch.form.kind}: the interpreter cannot run it")
        from toolchain.runtime.cpu import CpuExecutor, interpreted
        from toolchain.tileir import interpreter

        cpu = self._executor
        assert isinstance(cpu, CpuExecutor)
        if launch.code not in loaded:
            loaded[launch.code] = interpreter.prepare(self._recording.read(launch.code))
        arguments: list[Any] = []
        for parameter in launch.parameters:
            if "table" in parameter:
                raise NotInterpretable(f"{launch.symbol} takes a list of arrays: its recording runs on a GPU alone")
            if "number" in parameter:
                arguments.append(parameter["number"][1])
            else:
                buffer = self._buffers[parameter["array"]]
                arguments.append(interpreter.Pointer(interpreted(buffer.allocation), buffer.offset))
        prepared = loaded[launch.code]
        return lambda: cpu.submit(self._buffers, lambda: prepared.launch(launch.symbol, arguments, launch.grid))


def timed_cells(recording: Recording) -> list[Cell]:
    return [cell for cell in recording.cells if cell.timed]


def check_targets(executor: Executor, recording: Recording) -> None:
    """Raises BundleError for a recording without cubins, where there is a GPU to run them."""
    if executor.kind == "cuda" and not recording.targets:
        raise BundleError(f"{recording.root} has no cubins", hint="record it with --target")


def _words(array: Array) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The bytes of an array in whole words."""
    data = np.ascontiguousarray(array).tobytes()
    return np.frombuffer(data + bytes(-len(data) % WORD.itemsize), WORD)


def _placed(executor: Executor, array: Array) -> DeviceBuffer:
    words = _words(array)
    buffer = executor.empty((max(math.ceil(array.nbytes / WORD.itemsize), 1),), "i32")
    if words.size:
        buffer.copy_from(words)
    return buffer


__all__: Sequence[str] = ["Played", "check_targets", "timed_cells"]
