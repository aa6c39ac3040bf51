"""Where the author's own text says that an operation comes from, and the scopes of debug information.

A place is one of MLIR's locations: a position in a file, a range of it, a name, several places fused into one, a call,
or nothing. `Scoped` is Tile IR's own: a position inside a scope. Bytecode can only store scoped places and their calls.

Source: the public `cuda_tile` dialect, whose attributes are `di_loc`, `di_file`, `di_compile_unit`, `di_subprogram` and
`di_lexical_block`.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Operation

from .. import location
from ..location import Location
from .control import EntryOp, ModuleOp


@dataclass(frozen=True)
class File:
    name: str
    directory: str


@dataclass(frozen=True)
class CompileUnit:
    file: File


@dataclass(frozen=True)
class Subprogram:
    """A function of the source: `scope_line` is where its body begins, 0 if it is not said."""

    file: File
    line: int
    name: str
    linkage_name: str
    compile_unit: CompileUnit
    scope_line: int = 0


@dataclass(frozen=True)
class LexicalBlock:
    """Braces inside a subprogram; `column` is 0 if it is not said."""

    scope: Scope
    file: File
    line: int
    column: int = 0


Scope: TypeAlias = Subprogram | LexicalBlock


@dataclass(frozen=True)
class Unknown:
    pass


@dataclass(frozen=True)
class Range:
    start: Location
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Named:
    name: str
    place: Place | None


@dataclass(frozen=True)
class Fused:
    """Several places. `metadata`: an attribute as it is spelled."""

    places: tuple[Place, ...]
    metadata: str | None = None


@dataclass(frozen=True)
class CallSite:
    """Code that was inlined: where it stands, and where it was called."""

    callee: Place
    caller: Place


@dataclass(frozen=True)
class Scoped:
    position: Location
    scope: Scope


Place: TypeAlias = Location | Unknown | Range | Named | Fused | CallSite | Scoped
Node: TypeAlias = File | CompileUnit | Subprogram | LexicalBlock
PLACES = (Location, Unknown, Range, Named, Fused, CallSite, Scoped)
UNKNOWN = Unknown()


def attach(op: Operation, place: Place) -> None:
    """Remember what the text says of an operation's origin. Its position, if there is one, is what errors name."""
    op.tile_place = place  # pyright: ignore[reportAttributeAccessIssue]
    if (found := position(place)) is not None:
        location.set(op, found)


def attached(op: Operation) -> Place | None:
    """What the text says of an operation's origin; None if it says nothing."""
    return getattr(op, "tile_place", None)


def position(place: Place) -> Location | None:
    """The position in a file that a place names first, of a call that of the inlined code."""
    match place:
        case Location():
            return place
        case Range():
            return place.start
        case Named():
            return None if place.place is None else position(place.place)
        case Fused():
            return next((found for inner in place.places if (found := position(inner))), None)
        case CallSite():
            return position(place.callee) or position(place.caller)
        case Scoped():
            return place.position
        case Unknown():
            return None


def scope_of(place: Place | None) -> Scope | None:
    """The scope that an operation at this place belongs to; of a call, that of the caller."""
    match place:
        case Scoped():
            return place.scope
        case Named():
            return scope_of(place.place)
        case Fused():
            return next((found for inner in place.places if (found := scope_of(inner))), None)
        case CallSite():
            return scope_of(place.caller)
        case _:
            return None


def subprogram_of(scope: Scope) -> Subprogram:
    """The function around a scope."""
    while isinstance(scope, LexicalBlock):
        scope = scope.scope
    return scope


def scoped_places(module: ModuleOp) -> Mapping[Operation, Place]:
    """A place for each entry and each of its operations. An entry whose text has a scope keeps what its text says. For
    any other entry a subprogram is made from its position, and all of its operations are in that subprogram. An
    operation without a position gets that of its entry."""
    found: dict[Operation, Place] = {}
    for entry in module.entries.values():
        if scope_of(attached(entry)) is not None:
            found |= {op: attached(op) or UNKNOWN for op in entry.walk()}
            continue
        place = location.get(entry) or Location("<unknown>", 1, 1)
        subprogram = _subprogram(entry, place)
        found |= {op: Scoped(location.get(op) or place, subprogram) for op in entry.walk()}
    return found


def attach_all(module: ModuleOp) -> None:
    """Attach to each operation the place that `scoped_places` gives it, so that it is printed."""
    for op, place in scoped_places(module).items():
        attach(op, place)


def _subprogram(entry: EntryOp, place: Location) -> Subprogram:
    directory, name = os.path.split(place.file)
    file = File(name, directory)
    return Subprogram(file, place.line, entry.symbol, entry.symbol, CompileUnit(file), place.line)
