"""`torch.cuda` as it is with one GPU, on which all work is done at once: streams and events have nothing to do."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from ..errors import UsageError
from . import cutile
from .settings import SMS, Settings

_HANDLE = 0x5000  # of the one stream
_MEMORY = 1 << 34  # bytes


class Stream:
    """torch.cuda.Stream."""

    cuda_stream = _HANDLE
    priority = 0

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def wait_stream(self, stream: Any) -> None: ...

    def wait_event(self, event: Any) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def record_event(self, event: Any = None) -> Any:
        return event or Event()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return _HANDLE

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None: ...


class Event:
    """torch.cuda.Event. All that a stream was given has ended when it records one."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._recorded: float | None = None

    def record(self, stream: Any = None) -> None:
        del stream
        self._recorded = time.perf_counter()

    def wait(self, stream: Any = None) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds on this machine, which say nothing of a GPU. Programs choose by it how often they repeat what
        they time, and divide by it."""
        if self._recorded is None or end._recorded is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return max((end._recorded - self._recorded) * 1e3, 1e-3)


class Properties:
    """torch.cuda.get_device_properties."""

    name = "tilestack interpreter"
    multi_processor_count = SMS
    L2_cache_size = 1 << 20
    total_memory = _MEMORY
    shared_memory_per_block = 48 * 1024
    shared_memory_per_block_optin = 227 * 1024
    shared_memory_per_multiprocessor = 228 * 1024
    max_threads_per_multi_processor = 2048
    regs_per_multiprocessor = 65536
    warp_size = 32

    def __init__(self, capability: tuple[int, int]) -> None:
        self.major, self.minor = capability


class Chosen:
    """`with torch.cuda.device(0)` and `with torch.cuda.stream(s)`."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> Chosen:
        return self

    def __exit__(self, *_: object) -> None: ...


def install(settings: Settings) -> None:
    """Replaces what programs use of `torch.cuda`, and makes tensors pose. PyTorch has been imported."""
    from . import torch_mode, torch_tools

    torch = torch_mode.torch

    def storages() -> Any:
        driver = cutile.driver()
        return driver.storages if driver is not None else None

    for name, value in _names(settings).items():
        setattr(torch.cuda, name, value)
    torch_tools.install()
    torch.Generator = _on_host(torch.Generator)
    torch.load = _load(torch.load)
    torch.from_numpy = _marked(torch.from_numpy)
    torch_mode.capsules(storages)
    torch_mode.enter()


def _names(settings: Settings) -> dict[str, Any]:
    one = Stream()
    answers: dict[str, Any] = {
        "is_available": True, "is_initialized": True, "device_count": 1, "current_device": 0, "current_stream": one,
        "default_stream": one, "get_device_capability": settings.capability, "get_device_name": Properties.name,
        "get_device_properties": Properties(settings.capability), "mem_get_info": (_MEMORY, _MEMORY),
        "is_current_stream_capturing": False, "is_bf16_supported": True, "memory_allocated": 0,
        "max_memory_allocated": 0, "memory_reserved": 0, "max_memory_reserved": 0,
    }  # fmt: skip
    silent = (
        "init", "_lazy_init", "synchronize", "empty_cache", "set_device", "set_stream", "reset_peak_memory_stats",
        "reset_accumulated_memory_stats", "reset_max_memory_allocated", "ipc_collect",
    )  # fmt: skip
    refused = ("CUDAGraph", "graph", "make_graphed_callables", "graph_pool_handle")
    return {
        **{name: _answer(value) for name, value in answers.items()},
        **{name: _answer(None) for name in silent},
        **{name: _refused(name) for name in refused},
        "Stream": Stream, "ExternalStream": Stream, "Event": Event, "stream": Chosen, "device": Chosen,
    }  # fmt: skip


def _answer(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> None:
        raise UsageError(
            f"torch.cuda.{name}: a CUDA graph cannot be captured on the interpreter", hint="launch without a graph"
        )

    return refuse


def _on_host(real: Any) -> Any:
    """torch.Generator, which is the CPU's whatever device it is asked for."""

    class Generator(real):
        def __new__(cls, device: Any = "cpu") -> Any:
            del device
            return real.__new__(real, "cpu")

    return Generator


def _load(real: Callable[..., Any]) -> Callable[..., Any]:
    """torch.load: what is to be loaded to a GPU is loaded to the CPU, and poses."""

    @functools.wraps(real)
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        from . import torch_mode

        on_gpu = torch_mode.named(map_location) == torch_mode.CUDA
        return real(f, "cpu" if on_gpu else map_location, *args, **kwargs)

    return load


def _marked(real: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose tensors are the CPU's, though no mode sees them made."""

    @functools.wraps(real)
    def make(*args: Any) -> Any:
        from . import torch_mode

        made = real(*args)
        setattr(made, torch_mode.MARK, torch_mode.CPU)
        return made

    return make
