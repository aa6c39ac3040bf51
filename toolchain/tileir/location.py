"""The source location of an operation."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import Operation


class Location(NamedTuple):
    """A place in a source file; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


def get(op: Operation) -> Location | None:
    """The operation's source location, if it is known."""
    return getattr(op, "tile_location", None)


def set(op: Operation, place: Location) -> None:  # noqa: A001 (reads as location.set)
    """Stores the operation's source location."""
    op.tile_location = place  # pyright: ignore[reportAttributeAccessIssue]
