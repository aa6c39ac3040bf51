"""Kernels of cubins on PyTorch's stream, and the times of several sides in turn."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cute_runtime.device import executor
from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.contract.artifact import TensorMap
from toolchain.runtime.modules import get_function, load_module
from toolchain.runtime.packing import Packed, number
from toolchain.runtime.tensor_maps import describe

from .peers.pytorch import Tensor, torch

ROUNDS, WARM_UP, LAUNCHES = 15, 2, 10
Size = tuple[int, int, int]  # in x, y and z


class Function:
    """A kernel of a cubin on PyTorch's GPU. `shared`: bytes of dynamic shared memory. Raises DeviceError."""

    def __init__(self, cubin: bytes, symbol: str, shared: int = 0) -> None:
        self.symbol, self.shared, self.gpu = symbol, shared, executor(torch.cuda.current_device())
        doing = f"loading {symbol}"
        self._function = get_function(self.gpu, load_module(self.gpu, cubin, doing), symbol, shared, doing)

    def bind(self, grid: Size, block: Size, arguments: Sequence[bytes]) -> Callable[[], None]:
        """A function that launches the kernel on PyTorch's stream. `arguments`: the bytes of each parameter."""
        packed, what = Packed(arguments), f"{self.symbol} with grid {grid}"

        def launch() -> None:
            stream = torch.cuda.current_stream().cuda_stream
            config = self.gpu.launch_config(grid, block, self.shared, stream=stream)
            self.gpu.launch(config, (self._function, packed.address), what)

        return launch


class EntryFunction(Function):
    """An entry of a bundle on PyTorch's GPU, from its cubin for `target`."""

    def __init__(self, bundle: Bundle, entry: BundleEntry, target: str) -> None:
        self.spec, self.form = entry.spec, entry.form
        super().__init__(bundle.read(entry.cubins[target]), entry.spec.symbol, entry.form.shared_bytes)

    def on(self, dims: Mapping[str, int], *arguments: Tensor | float) -> Callable[[], None]:
        """A function that launches it on these arguments, in the order of its op's parameters. `dims`: the sizes that
        its grid depends on."""
        given = {param.name: value for param, value in zip(self.spec.params, arguments, strict=True)}
        content: list[bytes] = []
        for param in self.spec.params:
            value: Any = given[param.name]
            content += passed(value) if param.dims else [number(param.dtype, value)]
        stored = {param.name: param.storage(self.spec.dtype) for param in self.spec.params}
        content += [self._map(made, stored[made.array], given[made.array]) for made in self.form.maps]
        return self.bind(self.spec.grid_for(dims, processors()), self.form.block, content)

    def _map(self, made: TensorMap, dtype: str, tensor: Any) -> bytes:
        strides = tuple(stride * tensor.element_size() for stride in tensor.stride())
        return self.gpu.encode(describe(made, dtype, tensor.data_ptr(), tuple(tensor.shape), strides))


def address(tensor: Tensor) -> bytes:
    """The argument for an array that is passed as its pointer alone."""
    return tensor.data_ptr().to_bytes(8, "little")


def passed(*tensors: Tensor) -> list[bytes]:
    """The arguments for arrays in cuTile's calling convention: each one's pointer, sizes and strides."""
    made: list[bytes] = []
    for tensor in tensors:
        made += [
            tensor.data_ptr().to_bytes(8, "little"),
            *(number("i32", n) for n in (*tensor.shape, *tensor.stride())),
        ]
    return made


def processors() -> int:
    """The multiprocessors of PyTorch's GPU."""
    return torch.cuda.get_device_properties(0).multi_processor_count


def times_in_turn(sides: Mapping[str, Callable[[], None]]) -> dict[str, list[float]]:
    """The microseconds of a launch of each side in each round. A round runs a CUDA graph of each side, in an order of
    its own: at its limit of power a GPU's clock depends on the work before."""
    graphs: dict[str, Any] = {}
    for label, launch in sides.items():
        launch()
        torch.cuda.synchronize()
        graphs[label] = graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(LAUNCHES):
                launch()
    times: dict[str, list[float]] = {label: [] for label in sides}
    draw, order = random.Random(0), list(sides)
    for turn in range(-WARM_UP, ROUNDS):
        draw.shuffle(order)
        for label in order:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graphs[label].replay()
            end.record()
            end.synchronize()
            if turn >= 0:
                times[label].append(start.elapsed_time(end) / LAUNCHES * 1e3)
    return times
