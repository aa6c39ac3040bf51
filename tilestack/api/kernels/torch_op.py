"""`torch_op`: a kernel as an operator of PyTorch, which torch.compile can put into its graphs."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from toolchain.errors import LaunchError, UsageError

from ..arguments.binding import Grid, three
from ..arguments.parameters import Parameter
from ..needs import packages_for

_SPELLED = {int: "SymInt", float: "float"}


class Launchable(Protocol):
    """What an operator needs of a kernel."""

    name: str

    @property
    def parameters(self) -> tuple[Parameter, ...]: ...

    @property
    def arguments(self) -> Mapping[str, Parameter | None]: ...

    def specialize(self, *args: Any, **constants: Any) -> Launchable: ...

    def launch(self, grid: Grid | None, args: Sequence[Any], *, on: str, constants: Mapping[str, Any]) -> None: ...


def torch_op(
    name: str,
    kernel: Launchable,
    *,
    grid: Callable[..., Grid] | None = None,
    outputs: Mapping[str, Callable[..., Any]],
    updates: Sequence[str] = (),
    numbers: Mapping[str, type[int] | type[float]] | None = None,
    **constants: Any,
) -> Callable[..., Any]:
    """Registers a kernel as the operator `name`, such as "mine::add", and returns it.

    The operator takes the kernel's arguments without its outputs, allocates these and returns them: one tensor, or a
    tuple of several. It runs on tensors of a CPU (on the interpreter) and of a GPU (on PyTorch's current stream), and
    has no gradient.

    `outputs`: for each argument that is an output a function of the operator's arguments that allocates it, for example
    `{"out": lambda x, y: torch.empty_like(x)}`. torch.compile calls it on tensors without memory to learn shapes and
    dtypes. `grid`: a function of the operator's arguments; a bundle's entry knows its grid. `updates`: the arguments
    that the kernel changes in place. `numbers`: of a cuTile function, which arguments are an int or a float; else all
    are tensors. `constants`: of a cuTile function.

    Raises UsageError for a name without namespace or an unknown argument, and ToolchainError without PyTorch. A call
    raises LaunchError as `Launch` does, and if the kernel writes an argument that is neither an output nor in
    `updates`.
    """
    with packages_for("an operator of PyTorch"):
        torch: Any = importlib.import_module("torch")  # which the toolchain does not have
    kinds = _kinds(kernel, numbers or {})
    for argument in (*outputs, *updates):
        if kinds.get(argument) != "Tensor":
            listed = ", ".join(key for key, kind in kinds.items() if kind == "Tensor")
            raise UsageError(f"{kernel.name} takes no array {argument!r}", hint=f"one of {listed}")
    if name.count("::") != 1:
        raise UsageError(f"{name!r} is not an operator's name", hint='write it as "namespace::name"')
    if not outputs and not updates:
        raise UsageError(f"{name} has neither outputs nor updates, so nothing would come of it")
    inputs = [argument for argument in kinds if argument not in outputs]
    _check_parameters(grid, inputs, f"grid of {name}")
    for argument, allocate in outputs.items():
        _check_parameters(allocate, inputs, f"outputs[{argument!r}] of {name}")

    def allocated(args: Sequence[Any]) -> dict[str, Any]:
        return {argument: allocate(*args) for argument, allocate in outputs.items()}

    def run(*args: Any) -> Any:
        made = allocated(args)
        given = dict(zip(inputs, args, strict=True)) | made
        values = [given[key] for key in kinds]
        ready = kernel.specialize(*values, **constants)
        _check_written(ready, list(kinds), {*outputs, *updates})
        ready.launch(None if grid is None else three(grid(*args)), values, on="auto", constants={})
        return _result(made)

    def fake(*args: Any) -> Any:
        return _result(allocated(args))

    operator = torch.library.custom_op(name, run, mutates_args=tuple(updates), schema=_schema(kinds, outputs, updates))
    operator.register_fake(fake)
    return operator


def _result(made: Mapping[str, Any]) -> Any:
    values = tuple(made.values())
    return values[0] if len(values) == 1 else values or None


def _kinds(kernel: Launchable, numbers: Mapping[str, type[int] | type[float]]) -> dict[str, str]:
    """Each argument of a kernel, and its type in PyTorch's schemas."""
    known = kernel.arguments
    if unknown := [name for name in numbers if name not in known or known[name] is not None]:
        raise UsageError(
            f"numbers= is for the arguments of a cuTile function: {kernel.name} has no such argument {unknown[0]!r}",
            hint=f"it takes {', '.join(known)}",
        )
    return {
        name: _SPELLED[numbers[name]] if name in numbers else _spelled(parameter) for name, parameter in known.items()
    }  # fmt: skip


def _spelled(parameter: Parameter | None) -> str:
    if parameter is None or parameter.kind != "number":
        return "Tensor"
    return "bool" if parameter.dtype == "i1" else "SymInt" if parameter.dtype.startswith("i") else "float"


def _schema(kinds: Mapping[str, str], outputs: Mapping[str, object], updates: Sequence[str]) -> str:
    marks = {name: f"(a{number}!)" for number, name in enumerate(updates)}
    taken = ", ".join(f"{kind}{marks.get(name, '')} {name}" for name, kind in kinds.items() if name not in outputs)
    made = ", ".join("Tensor" for _ in outputs)
    return f"({taken}) -> {made if len(outputs) == 1 else f'({made})'}"


def _check_parameters(function: Callable[..., Any] | None, inputs: Sequence[str], what: str) -> None:
    """Raises UsageError for a function that cannot be called with the operator's arguments."""
    if function is None:
        return
    try:
        signature = inspect.signature(function)
    except ValueError:  # PyTorch's own functions do not tell
        return
    try:
        signature.bind(*inputs)
    except TypeError as error:
        raise UsageError(f"{what}: it is called with {', '.join(inputs)}, and {error}") from error


def _check_written(kernel: Launchable, names: Sequence[str], declared: set[str]) -> None:
    """Raises LaunchError if the kernel writes an argument that PyTorch takes for unchanged."""
    written = [name for name, p in zip(names, kernel.parameters, strict=True) if p.written and name not in declared]
    if written:
        raise LaunchError(
            f"{kernel.name} writes {', '.join(written)}, which is neither among the operator's outputs nor its updates",
            hint=f"updates=[{written[0]!r}]",
        )
