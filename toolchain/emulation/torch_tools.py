"""What programs use of PyTorch beside its tensors: mixed precision, torch.compile, random states, profiling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch as _torch  # pyright: ignore[reportMissingImports] - type checking works without it

torch: Any = _torch


class Silent:
    """A library of which every function succeeds and does nothing: NVTX, and the CUDA runtime of a profiler."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name.startswith("__"):
            raise AttributeError(name)
        return _answer(0)


def install() -> None:
    """Replaces these names. What stands for `torch.cuda` is there already."""
    torch.compile = _uncompiled
    torch.nn.Module.compile = _answer(None)
    torch.cuda.nvtx._nvtx = Silent()  # noqa: SLF001 - the module calls it by this name
    for name, value in _names().items():
        setattr(torch.cuda, name, value)
    torch.cuda.profiler.cudart, torch.cuda.profiler.check_error = torch.cuda.cudart, torch.cuda.check_error
    _of_cpu_alone(torch.profiler.profiler._KinetoProfile)  # noqa: SLF001 - what torch.profiler.profile is made of
    torch.accelerator.current_accelerator = _answer(torch.device("cuda"))
    torch.accelerator.current_device_index = torch.cuda.current_device
    for name in ("is_available", "device_count", "current_stream", "synchronize", "empty_cache"):
        setattr(torch.accelerator, name, getattr(torch.cuda, name))
    _lower_on_cpu(torch.amp.autocast_mode.autocast)


def _names() -> dict[str, Callable[..., Any]]:
    """Random numbers of tensors that pose as CUDA's come from the CPU's generator, so its state is theirs."""
    generator = torch.default_generator

    def get_state(*_: Any, **__: Any) -> Any:
        return generator.get_state()

    def set_state(state: Any, *_: Any, **__: Any) -> None:
        generator.set_state(state)

    def set_states(states: Any) -> None:
        generator.set_state(states[0])

    counts: defaultdict[str, int] = defaultdict(int)
    return {
        "cudart": _answer(Silent()), "check_error": _answer(None), "_sleep": _answer(None),
        "can_device_access_peer": _answer(False), "memory_stats": _answer(counts),
        "memory_summary": _answer("nothing is counted on the interpreter"),
        "manual_seed": generator.manual_seed, "manual_seed_all": generator.manual_seed, "seed": generator.seed,
        "seed_all": generator.seed, "initial_seed": generator.initial_seed, "get_rng_state": get_state,
        "set_rng_state": set_state, "get_rng_state_all": lambda: [generator.get_state()],
        "set_rng_state_all": set_states,
    }  # fmt: skip


def _answer(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _uncompiled(model: Any = None, **_: Any) -> Any:
    """torch.compile: the function itself, since what it compiles would be for a GPU."""
    return _uncompiled if model is None else model


def _of_cpu_alone(profiler: Any) -> None:
    """Lets a profiler that is asked for CUDA's activity record the CPU's."""
    real, cpu = profiler.__init__, torch.profiler.ProfilerActivity.CPU

    def make(self: Any, *, activities: Any = None, **kwargs: Any) -> None:
        del activities
        real(self, activities=[cpu], **kwargs)

    profiler.__init__ = make


def _lower_on_cpu(autocast: Any) -> None:
    """Lets mixed precision on CUDA lower products on the CPU, where they are computed."""
    begin, end = autocast.__enter__, autocast.__exit__

    def enter(self: Any) -> Any:
        if self.device == "cuda":
            self._on_cpu = autocast("cpu", self.fast_dtype, self._enabled)
            begin(self._on_cpu)
        return begin(self)

    def leave(self: Any, *error: Any) -> Any:
        result = end(self, *error)
        if self.device == "cuda":
            end(self._on_cpu, *error)
        return result

    autocast.__enter__, autocast.__exit__ = enter, leave
