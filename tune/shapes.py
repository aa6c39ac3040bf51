"""Sizes of an op's dimensions, in a program and in words."""

from __future__ import annotations

from collections.abc import Mapping

from toolchain.entry import ops
from toolchain.errors import UsageError

Dims = Mapping[str, int]


def dimensions(op: str) -> list[str]:
    """The dimension symbols of an op, in the order of its parameters."""
    return list(dict.fromkeys(d for param in ops()[op].params for d in param.dims))


def shape_name(dims: Dims) -> str:
    """`M=8192 K=768 N=2304`, as `parse_shape` reads it."""
    return " ".join(f"{name}={size}" for name, size in dims.items())


def parse_shape(written: str) -> dict[str, int]:
    """Raises UsageError."""
    parts = [part.partition("=") for part in written.split()]
    if not parts or not all(name.isidentifier() and size.isdecimal() for name, _, size in parts):
        raise UsageError(f"{written!r} is no shape", hint="write it as 'M=8192 K=768 N=2304'")
    return {name: int(size) for name, _, size in parts}
