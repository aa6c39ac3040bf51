"""Kernel: an entry that can be launched on arrays of any library, on a GPU or on the interpreter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolchain.errors import LaunchError, UsageError
from toolchain.runtime.executor import PLACE

from ..arguments import binding
from ..arguments.binding import Grid
from ..arguments.given import Given, arrays, arrays_of, spread
from ..arguments.parameters import Parameter
from ..launches import code, cpu, plan, recorder
from ..launches.code import Code
from ..launches.plan import Plans, RepeatedLaunch

if TYPE_CHECKING:
    from toolchain.compiling.cubin import Usage

    from ..launches.gpu import Function


def place(on: str, given: Sequence[Given]) -> int | None:
    """Where a launch runs: the number of a GPU, or None for the interpreter. Raises UsageError and NoGPU."""
    match = PLACE.fullmatch(on)
    if match is None:
        raise UsageError(f"no launch runs on {on!r}", hint='on= one of "auto", "cpu", "cuda", "cuda:<number>"')
    there = next((a.device for a in arrays(given) if a.device is not None), None)
    if on == "cpu":
        return None
    if on == "auto" and there is None:
        from toolchain.runtime import gpus

        return 0 if gpus() else None
    return there if match[1] is None and there is not None else int(match[1] or 0)


@dataclass(frozen=True)
class Entry:
    """One entry, ready to launch. `check`: what else its arguments must fulfil; it returns the grid that they need, or
    None if the caller decides. Its arguments are those bound, and the multiprocessors of the device. `may_share`: its
    code knows which of its arrays share memory."""

    code: Code
    parameters: tuple[Parameter, ...]
    check: Callable[[Sequence[binding.Argument], int], tuple[int, int, int] | None] | None = None
    plans: Plans = field(default_factory=Plans)
    may_share: bool = False
    _functions: dict[int, Function] = field(default_factory=dict[int, "Function"])

    def launch(self, grid: Grid | None, args: Sequence[Any], given: Sequence[Given], on: str) -> RepeatedLaunch | None:
        """Checks the arguments and launches. Returns a plan to repeat this launch with, where there can be one."""
        symbol = self.code.symbol
        bound = binding.bind(symbol, self.parameters, args, given, may_share=self.may_share)
        if (taken := recorder.current()) is not None:
            taken.take(self.code, bound, self._grid(grid, bound, taken.sms))
            return None
        device = place(on, given)
        if device is None:
            from toolchain.runtime.cpu import SMS

            cpu.launch(self.code, bound, self._grid(grid, bound, SMS))
            return None
        from ..launches import gpu

        device = gpu.device_of(symbol, bound, device)
        if device not in self._functions:
            self._functions[device] = gpu.load(self.code, device)
        function = self._functions[device]
        blocks = self._grid(grid, bound, function.gpu.sms)
        gpu.launch(self.code, function, bound, blocks)
        return plan.RepeatedLaunch(self.code, function, bound, blocks) if plan.plannable(bound, blocks) else None

    def _grid(self, grid: Grid | None, bound: Sequence[binding.Argument], sms: int) -> tuple[int, int, int]:
        wanted = None if self.check is None else self.check(bound, sms)
        if grid is None:
            if wanted is None:
                raise LaunchError(f"{self.code.symbol}: over how many blocks?", hint="k[(blocks,)](...)")
            return wanted
        given = binding.three(grid)
        if wanted is not None and given != wanted:
            raise LaunchError(
                f"{self.code.symbol}: the grid is {given}, but these arguments need {wanted}",
                hint="leave the grid out: k(...)",
            )
        return given


class Kernel(ABC):
    """A kernel that `tilestack.load` found. `k[grid](*args)` launches it over `grid` blocks.

    `name`: of the entry. Each argument is an array (numpy, PyTorch, CuPy, or any other with DLPack or
    `__cuda_array_interface__`), a number, a list of arrays of one dtype and rank, or a tuple of these. A launch runs on
    the GPU of its arrays; of arrays in the host's memory, on the first GPU, or on the interpreter where there is none.
    Outputs are arguments too, and are written in place.
    """

    name: str

    def __getitem__(self, grid: Grid) -> Launch:
        """The kernel over a grid: one to three numbers of blocks, in x, y and z."""
        return Launch(self, binding.three(grid))

    def __call__(self, *args: Any, on: str = "auto", **constants: Any) -> None:
        """Launches an entry of a bundle, which computes its grid from its arguments' sizes. Raises what `Launch` does;
        LaunchError for other kernels, whose grid only the caller knows."""
        self.launch(None, args, on=on, constants=constants)

    @abstractmethod
    def launch(self, grid: Grid | None, args: Sequence[Any], *, on: str, constants: Mapping[str, Any]) -> None:
        """What `k[grid](*args)` calls."""

    @property
    @abstractmethod
    def compiled(self) -> Entry:
        """The entry itself. Raises UsageError for a function that was not traced yet."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What the kernel takes, in order, and which arrays it writes."""
        return self.compiled.parameters

    @property
    def arguments(self) -> Mapping[str, Parameter | None]:
        """What it takes, by name; None for what only a launch of a function tells."""
        return {parameter.name: parameter for parameter in self.parameters}

    def specialize(self, *args: Any, **constants: Any) -> Kernel:
        """The kernel for arguments such as these, without a launch: a cuTile function is traced, others are what they
        are. Raises LaunchError, and SourceError that names the line of a function."""
        del args
        if constants:
            raise LaunchError(
                f"{self.name} takes no arguments by name, and it was given {', '.join(constants)}: only constants of a "
                "cuTile function are given so",
                hint=f"give them by position: {', '.join(map(str, self.parameters))}",
            )
        return self

    def verify(self) -> None:
        """Raises SourceError if the compiler would refuse the kernel, NotInterpretable if it is PTX."""
        code.verify(self.compiled.code)

    def disassemble(self) -> str:
        """The kernel as Tile IR text. Raises NotInterpretable if it is PTX."""
        return code.text(self.compiled.code)

    def inspect(self, target: str) -> Usage:
        """What its cubin for a target such as "sm_90" uses of the GPU: `registers` per thread, `shared` memory in
        bytes, `spills`, `instructions`, and the `mix` of these by name. No GPU is needed.

        Raises UsageError for an unknown target, ToolchainError without the compiler's tools, BundleError if a bundle
        has no such cubin.
        """
        from toolchain.contract import targets

        (chosen,) = targets.select([target])
        return code.usage(self.compiled.code, chosen.name)

    def as_torch_op(
        self,
        name: str,
        *,
        grid: Callable[..., Grid] | None = None,
        outputs: Mapping[str, Callable[..., Any]],
        updates: Sequence[str] = (),
        numbers: Mapping[str, type[int] | type[float]] | None = None,
        **constants: Any,
    ) -> Callable[..., Any]:
        """The kernel as an operator of PyTorch; see `tilestack.torch_op`, which this calls."""
        from .torch_op import torch_op

        return torch_op(name, self, grid=grid, outputs=outputs, updates=updates, numbers=numbers, **constants)

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join(map(str, self.parameters))})>"


@dataclass(frozen=True)
class Launch:
    """A kernel over a grid, which a call launches."""

    kernel: Kernel
    grid: tuple[int, int, int]

    def __call__(self, *args: Any, on: str = "auto", **constants: Any) -> None:
        """Launches the kernel. `args`: in the kernel's order. `on`: "auto", "cpu" (the interpreter, also where there is
        a GPU), "cuda" or "cuda:1". `constants`: of a cuTile function, what is compiled in.

        On a GPU the launch joins PyTorch's or CuPy's current stream and returns at once; with arrays in the host's
        memory, which are copied to the GPU and back, it returns when they have the results.

        Raises LaunchError that names the argument that does not fit, SanitizerError for undefined behaviour (on the
        interpreter), ToolchainError if the kernel must be compiled and no compiler is here, and DeviceError.
        """
        self.kernel.launch(self.grid, args, on=on, constants=constants)


class EntryKernel(Kernel):
    """An entry of a file or of a bundle."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self.name = entry.code.symbol

    @property
    def compiled(self) -> Entry:
        return self._entry

    def launch(self, grid: Grid | None, args: Sequence[Any], *, on: str, constants: Mapping[str, Any]) -> None:
        call, plans = plan.read(grid, args, on, constants), self._entry.plans
        if plans.repeat(call) is not None:
            return
        self.specialize(*args, **constants)
        names = [parameter.name for parameter in self.parameters]
        flat = [leaf for arg in args for leaf in spread(arg)]
        plans.keep(call, self._entry.launch(grid, flat, arrays_of(self.name, flat, names), on))
