"""PyTorch on the device that our executor uses: its stream, its timing, its graphs, and errors of large tensors.

On a CPU it works without streams and graphs, so that everything else can be tested anywhere.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from toolchain.errors import ConformanceError

from ..cases.check import Errors, total
from ..cases.roofline import Ceilings
from .pytorch import Tensor, attention, inductor, torch

Call = Callable[[], Tensor]
MAX_AUTOTUNE = (
    "max-autotune-no-cudagraphs"  # of torch.compile; the graphs are ours to make, over several sets of inputs
)
WARM_UP_CALLS = 3
WARM_UP_S = 0.2
REST_S = 0.02
PIECE = 1 << 27  # elements that are compared at once: 1 GiB in float64
TORCH_DTYPES = {"f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
                "i32": torch.int32}  # fmt: skip
ATTENTION = {"flash": attention.SDPBackend.FLASH_ATTENTION, "cudnn": attention.SDPBackend.CUDNN_ATTENTION,
             "efficient": attention.SDPBackend.EFFICIENT_ATTENTION, "math": attention.SDPBackend.MATH}  # fmt: skip


@dataclass(frozen=True)
class Replay:
    """Calls that run together. `outputs`, after a run: those of the last call over each set. `calls` keeps the captured
    objects alive, because a graph only knows addresses."""

    run: Callable[[], object]
    outputs: Callable[[], Sequence[Tensor]]
    poison: Callable[[], None]
    calls: Sequence[Call]


class TorchSide:
    """PyTorch with a stream of its own for all of its work, as the executor has one for ours."""

    def __init__(self, device: str, flush_bytes: int | None = None) -> None:
        """`flush_bytes`: what is written between samples to empty the L2 cache. By default four times its size: twice
        would do for the cache, the rest gives the host time to queue what is measured."""
        self.device = torch.device(device)
        self.on_gpu = self.device.type == "cuda"
        torch.set_grad_enabled(False)
        torch.set_float32_matmul_precision("highest")  # the reference is in f32, not tf32
        self.l2_bytes = 0
        if self.on_gpu:
            torch.cuda.set_device(self.device)
            torch.cuda.set_stream(torch.cuda.Stream())
            self.l2_bytes = int(torch.cuda.get_device_properties(self.device).L2_cache_size)
        self.flush_bytes = 4 * self.l2_bytes if flush_bytes is None else flush_bytes
        self._flushed = torch.empty(max(self.flush_bytes, 1), dtype=torch.uint8, device=self.device)
        self._generator = torch.Generator(self.device)

    def dtype(self, name: str) -> Any:
        return TORCH_DTYPES[name]

    # Numbers

    def seed(self, seed: int) -> None:
        self._generator.manual_seed(seed)

    def normal(self, shape: Sequence[int], dtype: str) -> Tensor:
        """Standard normal numbers, drawn in f32."""
        drawn = torch.randn(tuple(shape), generator=self._generator, device=self.device, dtype=torch.float32)
        return drawn.to(TORCH_DTYPES[dtype])

    def integers(self, stop: int, shape: Sequence[int], dtype: Any = torch.int32) -> Tensor:
        return torch.randint(stop, tuple(shape), generator=self._generator, device=self.device, dtype=dtype)

    def errors(self, result: Tensor, reference: Tensor) -> Errors:
        """The errors of a tensor of any strides, compared with a reference of the same shape piece by piece."""
        if tuple(result.shape) != tuple(reference.shape):
            raise ConformanceError(f"shape {tuple(result.shape)}, wants {tuple(reference.shape)}")
        rows = max(1, PIECE // max(1, reference[0].numel())) if reference.dim() and reference.numel() else 1
        return total(self._piece(*pair) for pair in zip(result.split(rows), reference.split(rows), strict=True))

    def _piece(self, result: Tensor, reference: Tensor) -> Errors:
        got, exact = result.double(), reference.double()
        finite = torch.isfinite(got)
        difference = torch.where(finite, got, 0.0).sub_(exact).abs_()
        sums = [
            difference.square().sum(), exact.square().sum(), difference.max(), exact.abs().max(),
            (~finite).sum().double(),
        ]  # fmt: skip
        error_sq, reference_sq, worst, largest, bad = torch.stack(sums).tolist()
        return Errors(error_sq, reference_sq, worst, largest, int(bad), exact.numel())

    # Running

    def synchronize(self) -> None:
        """Wait for the whole device, including our executor's stream."""
        if self.on_gpu:
            torch.cuda.synchronize()

    def healthy(self) -> bool:
        """True if the device still works. After some errors this process cannot use it any more."""
        try:
            self.synchronize()
            return bool((torch.ones(1, device=self.device) + 1).item() == 2)
        except RuntimeError:
            return False

    def time_us(self, run: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> float:
        """The device time of `run`, with a cold L2 cache. `prepare` and the flush of the cache are queued first. While
        the device works on them, the host can queue all of `run`, so that the device never waits for the host."""
        prepare()
        self._flushed.zero_()
        if not self.on_gpu:
            started = time.perf_counter()
            run()
            return 1e6 * (time.perf_counter() - started)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        return 1e3 * start.elapsed_time(end)

    def capture(self, calls: Sequence[Call], sets: int, prepare: Callable[[], object] = lambda: None) -> Replay:
        """Capture one CUDA graph of all calls, over `sets` sets of inputs in turns. `prepare` is called before each
        warm-up call. An output lives until the next call over its set, so the graph reuses memory as an eager program
        does."""
        if not self.on_gpu:
            return self.each(calls, sets, prepare)
        self.warm_up(calls[:sets], prepare)
        outputs: list[Tensor] = [None] * sets
        graph = torch.cuda.CUDAGraph()
        gc.collect()
        # Relaxed: calls of another library meanwhile, such as freeing a collected object, must not end the capture.
        with torch.cuda.graph(graph, capture_error_mode="relaxed"):
            for index, call in enumerate(calls):
                outputs[index % sets] = None
                outputs[index % sets] = call()
        return Replay(graph.replay, lambda: outputs, lambda: _poison(outputs), calls)

    def each(self, calls: Sequence[Call], sets: int, prepare: Callable[[], object] = lambda: None) -> Replay:
        """The same calls one by one, as in a program without graphs. A compiler with its own graphs, or an allocator,
        reuses the memory of the last outputs for the next ones. So the last outputs are poisoned and then released."""
        outputs = self.warm_up(calls[:sets], prepare)

        def run() -> None:
            for index, call in enumerate(calls):
                outputs[index % sets] = call()

        def poison() -> None:
            _poison(outputs)
            outputs[:] = [None] * len(outputs)

        return Replay(run, lambda: outputs, poison, calls)

    def compile(self, function: Callable[..., Any], mode: str) -> Callable[..., Any]:
        """Compile with `torch.compile` for the shapes of the call, without printing the tilings that it tries."""
        inductor.autotune_num_choices_displayed = 0
        return torch.compile(function, mode=mode, dynamic=False)

    def warm_up(self, calls: Sequence[Call], prepare: Callable[[], object]) -> list[Tensor]:
        """Run the calls; functions that compile at their first call do so here. Returns the last output of each
        call."""
        outputs: list[Tensor] = [None] * len(calls)
        for _ in range(WARM_UP_CALLS):
            for index, call in enumerate(calls):
                outputs[index] = None  # free its memory for the next call, as in a program
                prepare()
                outputs[index] = call()
        self.synchronize()
        return outputs

    def sdpa(self, backend: str) -> AbstractContextManager[object]:
        """Use only this implementation of scaled dot product attention; `any` leaves the choice to PyTorch."""
        return attention.sdpa_kernel(list(ATTENTION.values()) if backend == "any" else [ATTENTION[backend]])

    def fastest_attention(self, attend: Callable[[], Tensor], backends: Sequence[str]) -> str:
        """The backend that runs `attend` in the least time. Raises RuntimeError if none does."""
        times: dict[str, float] = {}
        refused: list[Exception] = []
        for backend in backends:
            with self.sdpa(backend):
                try:
                    replay = self.capture([attend] * 5, 1)
                except RuntimeError as error:
                    error.add_note(f"attention by {backend}")
                    refused.append(error)
                    continue
                times[backend] = min(self.time_us(replay.run) for _ in range(5))
        if not times:
            raise RuntimeError(
                f"none of these attention backends runs here: {', '.join(backends)}"
            ) from ExceptionGroup("what each of them said", refused)
        return min(times, key=lambda backend: times[backend])

    def release(self) -> None:
        """Free the memory that the last case held."""
        torch.compiler.reset()
        gc.collect()
        if self.on_gpu:
            torch.cuda.empty_cache()

    # Memory

    def start_peak(self) -> int:
        """Start to record memory use. Returns the bytes in use now."""
        if not self.on_gpu:
            return 0
        torch.cuda.reset_peak_memory_stats()
        return int(torch.cuda.memory_allocated())

    def peak(self, since: int) -> int | None:
        return int(torch.cuda.max_memory_allocated()) - since if self.on_gpu else None


def _poison(outputs: Sequence[Any]) -> None:
    """Fill outputs, of PyTorch or of another library, with a value that no right result has."""
    for output in outputs:
        held = output if isinstance(output, torch.Tensor) else torch.from_dlpack(output)
        held.fill_(float("nan") if held.is_floating_point() else -(2**31))


def measure_ceilings(side: TorchSide, copy_bytes: int = 1 << 32, size: int = 8192, repeats: int = 20) -> Ceilings:
    """Measure the rate of a large copy (bytes read and written) and of a large bf16 product of random numbers. Each is
    the fastest of several runs with pauses between them: a GPU that has worked for a while lowers its clock, but the
    floor needs the highest rates."""
    a, b = side.normal((size, size), "bf16"), side.normal((size, size), "bf16")
    product_us = _fastest_us(side, lambda: torch.matmul(a, b), repeats)
    source = torch.empty(copy_bytes, dtype=torch.uint8, device=side.device).random_()
    target = torch.empty_like(source)
    copy_us = _fastest_us(side, lambda: target.copy_(source), repeats)
    return Ceilings(2 * copy_bytes / copy_us * 1e6, 2 * size**3 / product_us * 1e6)


def _fastest_us(side: TorchSide, run: Callable[[], object], repeats: int) -> float:
    begun = time.perf_counter()
    while time.perf_counter() - begun < WARM_UP_S:  # until the clocks are up
        side.time_us(run)
    times: list[float] = []
    for _ in range(repeats):
        side.synchronize()
        time.sleep(REST_S)
        times.append(side.time_us(run))
    return min(times)
