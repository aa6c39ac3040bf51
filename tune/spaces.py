"""Reads `tune/spaces.toml`, which says what is searched for each op.

A space is a kernel, the values that its constants and compiler hints may take, and the classes of sizes that are tuned
separately, each with sample sizes to measure. docs/tuning.md describes the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from toolchain.contract.expressions import evaluate, expression_names
from toolchain.contract.op import DTYPES, ops
from toolchain.errors import UsageError
from toolchain.tables import check_keys, flag, integers, is_integer, read_table, table_of, tables, text, texts

Dims = Mapping[str, int]


def dimensions(op: str) -> list[str]:
    """The dimension symbols of an op, in the order of its parameters."""
    return list(dict.fromkeys(d for param in ops()[op].params for d in param.dims))


def shape_name(dims: Dims) -> str:
    """`M=8192 K=768 N=2304`, as `parse_shape` reads it."""
    return " ".join(f"{name}={size}" for name, size in dims.items())


def parse_shape(written: str) -> dict[str, int]:
    """The sizes in `M=8192 K=768 N=2304`. Raises UsageError for another form."""
    parts = [part.partition("=") for part in written.split()]
    if not parts or not all(name.isidentifier() and size.isdecimal() for name, _, size in parts):
        raise UsageError(f"{written!r} is no shape", hint="write it as 'M=8192 K=768 N=2304'")
    return {name: int(size) for name, _, size in parts}


PATH = Path(__file__).parent / "spaces.toml"
MODEL = "model"  # all ops of a GPT-2's forward pass and of decoding
FASTEST = "fastest"  # another search: see fastest.py
HINTS = ("num_worker_warps", "occupancy", "num_ctas", "latency")
ITEMSIZE = "itemsize"  # bytes of an element, for `keep`


@dataclass(frozen=True)
class ShapeClass:
    """A class of sizes that gets an entry of its own: all sizes for which `where` holds.

    `shapes`: the sizes that are measured.
    `keep`: conditions that a variant must meet to be tried for this class.
    `cold`: launches are measured with none of their inputs in the L2 cache.
    """

    name: str
    where: tuple[str, ...]
    shapes: tuple[Dims, ...]
    keep: tuple[str, ...] = ()
    cold: bool = True

    def holds(self, dims: Dims) -> bool:
        return all(evaluate(condition, dims) for condition in self.where)

    def sizes(self, names: Iterable[str]) -> Dims:
        """The sizes that these dimensions have in all shapes."""
        return {name: self.shapes[0][name] for name in names}


@dataclass(frozen=True)
class Space:
    """A kernel and the values that may be chosen for it.

    `constants` and `hints`: the possible values of each name, in the kernel's order.
    `sizes`: dimensions whose size, which all shapes of a class must share, is compiled in.
    `tensor_cores`: a variant with 16-bit products that does not use them is not measured.
    The other fields are as in a row of entries, but `grid` may use hints too.
    """

    name: str
    op: str
    kernel: str
    dtypes: tuple[str, ...]
    constants: Mapping[str, tuple[int, ...]]
    hints: Mapping[str, tuple[int, ...]]
    grid: tuple[str, ...]
    aligned: tuple[str, ...]
    multiples: Mapping[str, int]
    sizes: tuple[str, ...]
    where: tuple[str, ...]
    keep: tuple[str, ...]
    tensor_cores: bool
    classes: tuple[ShapeClass, ...]


@dataclass(frozen=True)
class Spaces:
    """All spaces of a file. `model`: the ops that `tune model` searches. `models`: of other models the names of the
    spaces that `tune <name>` searches; these are left out of `tune model`."""

    model: tuple[str, ...]
    spaces: tuple[Space, ...]
    models: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def shared(self) -> list[Space]:
        """The spaces that are not of one of `models`."""
        theirs = {name for names in self.models.values() for name in names}
        return [space for space in self.spaces if space.name not in theirs]

    @property
    def words(self) -> list[str]:
        """What `of` takes."""
        return [*dict.fromkeys(space.op for space in (*self.shared, *self.spaces)), MODEL, *self.models]

    def of(self, what: str) -> list[Space]:
        """The spaces of an op, or of a model. Raises UsageError if there are none."""
        if what == MODEL:
            found = [space for space in self.shared if space.op in self.model]
        else:
            found = [space for space in self.spaces if space.op == what or space.name in self.models.get(what, ())]
        if not found:
            raise UsageError(f"no search space for {what}", hint=f"one of {', '.join(self.words)}")
        return found

    def joined(self, others: Spaces) -> Spaces:
        """These spaces, followed by others."""
        return replace(self, spaces=(*self.spaces, *others.spaces), models={**self.models, **others.models})

    def classes_of(self, op: str) -> set[str]:
        return {made.name for space in self.spaces if space.op == op for made in space.classes}

    def position(self, op: str, shape_class: str) -> int:
        """The index of a class among those of its op; the number of all if the class no longer exists."""
        names = [made.name for space in self.spaces if space.op == op for made in space.classes]
        return names.index(shape_class) if shape_class in names else len(names)


def load_spaces(path: Path = PATH) -> Spaces:
    """Read a file of spaces. Raises UsageError that names the file and the wrong space."""
    table = read_table(path)
    keys = {"model": texts, "models": _lists, "classes": _classes, "space": tables}
    check_keys(table, keys, str(path), ("classes", "models"))
    rows = {row["name"]: row for row in table["space"] if text(row.get("name")) is None}
    numbered = [(f"{path}: space {number}", row) for number, row in enumerate(table["space"], 1)]
    spaces = tuple(_space(where, _like(row, rows, where), table.get("classes", {})) for where, row in numbered)
    names = [space.name for space in spaces]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"{path}: two spaces are called {', '.join(sorted(twice))}")
    if unknown := [op for op in table["model"] if op not in {space.op for space in spaces}]:
        raise UsageError(f"{path}: model names {', '.join(unknown)}, for which there is no space")
    models = {name: tuple(listed) for name, listed in table.get("models", {}).items()}
    for name, listed in models.items():
        if name in (*ops(), MODEL, FASTEST):
            raise UsageError(f"{path}: models has {name}, which `tilestack tune` takes as another word")
        _among(listed, names, "space", f"{path}: models: {name}")
    _check_equal_classes(path, spaces)
    return Spaces(tuple(table["model"]), spaces, models)


def only_classes(spaces: Iterable[Space], pattern: re.Pattern[str]) -> list[Space]:
    """The spaces with only the classes whose name matches. Spaces without such a class are left out."""
    kept = (replace(s, classes=tuple(c for c in s.classes if pattern.search(c.name))) for s in spaces)
    return [space for space in kept if space.classes]


def only_shapes(spaces: Sequence[Space], shapes: Sequence[Dims]) -> list[Space]:
    """The spaces with these shapes instead of those of the file. A shape is in each class whose conditions it meets.

    Raises UsageError for a shape that does not belong to any class.
    """

    def within(space: Space, made: ShapeClass) -> tuple[Dims, ...]:
        return tuple(dims for dims in shapes if set(dims) == set(dimensions(space.op)) and made.holds(dims))

    found: list[Space] = []
    for space in spaces:
        chosen = (replace(made, shapes=within(space, made)) for made in space.classes)
        found.append(replace(space, classes=tuple(made for made in chosen if made.shapes)))
    taken = [dims for space in found for made in space.classes for dims in made.shapes]
    if lost := [shape_name(dims) for dims in shapes if dims not in taken]:
        takes = {f"{space.op}: {' '.join(dimensions(space.op))}": None for space in spaces}
        raise UsageError(f"no class takes {', '.join(lost)}", hint=f"dimensions of {'; '.join(takes)}")
    return [space for space in found if space.classes]


# Reading one space


def _choices(value: Any) -> str | None:
    good = table_of(lambda item: isinstance(item, list) and bool(item) and all(map(is_integer, item)), "")
    return "a table of lists of integers" if good(value) else None


def _shapes(value: Any) -> str | None:
    wrong = tables(value) or any(integers(item) for item in value)
    return "a list of tables of integers" if wrong or not value else None


def _lists(value: Any) -> str | None:
    good = table_of(lambda item: texts(item) is None and bool(item), "")
    return "a table of lists of names" if good(value) else None


def _classes(value: Any) -> str | None:
    return table_of(lambda item: isinstance(item, dict), "tables")(value)


def _named_or_classes(value: Any) -> str | None:
    return None if text(value) is None else _classes(value) and "the name of shared classes or a table of classes"


_SPACE = {
    "name": text, "like": text, "op": text, "kernel": text, "dtypes": texts, "constants": _choices, "hints": _choices,
    "keep": texts, "grid": texts, "aligned": texts, "multiples": integers, "sizes": texts, "where": texts,
    "shapes": _shapes, "tensor_cores": flag, "classes": _named_or_classes,
}  # fmt: skip
_CLASS = {"where": texts, "shapes": _shapes, "keep": texts, "cold": flag}


def _like(
    row: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]], where: str, asked: tuple[str, ...] = ()
) -> Mapping[str, Any]:
    """The row of a space, with missing keys taken from the space that it is `like`, which may be `like` another one.
    `asked`: the spaces on the way here; a space that is `like` one of these would be a circle."""
    if "like" not in row:
        return row
    if wanted := text(row["like"]):
        raise UsageError(f"{where}: like is {row['like']!r}, not {wanted}")
    asked = (*asked, row.get("name", ""))
    _among([row["like"]], [name for name in rows if name not in asked], "other space", where)
    return {**_like(rows[row["like"]], rows, where, asked), **row}


def _space(where: str, row: Mapping[str, Any], shared: Mapping[str, Any]) -> Space:
    optional = (
        "like",
        "kernel",
        "constants",
        "hints",
        "keep",
        "aligned",
        "multiples",
        "sizes",
        "where",
        "shapes",
        "tensor_cores",
    )
    check_keys(row, _SPACE, where, optional)
    where = f"{where} ({row['name']})"
    _among([row["op"]], ops(), "op", where)
    _among(row["dtypes"], DTYPES, "dtype", where)
    hints = {name: tuple(values) for name, values in row.get("hints", {}).items()}
    _among(hints, HINTS, "hint", where)
    if low := [f"{name} = {step}" for name, step in row.get("multiples", {}).items() if step < 1]:
        raise UsageError(f"{where}: multiples has {', '.join(low)}: it must be at least 1")
    if len(row["grid"]) != 3:
        raise UsageError(f"{where}: grid has {len(row['grid'])} expressions, not three")
    rows = row["classes"]
    if isinstance(rows, str):
        _among([rows], shared, "shared classes", where)
        rows = shared[rows]
    space = Space(
        row["name"], row["op"], row.get("kernel", ""), tuple(row["dtypes"]),
        {name: tuple(values) for name, values in row.get("constants", {}).items()}, hints,
        tuple(row["grid"]), tuple(row.get("aligned", ())), row.get("multiples", {}),
        tuple(row.get("sizes", ())), tuple(row.get("where", ())), tuple(row.get("keep", ())),
        row.get("tensor_cores", True), (),
    )  # fmt: skip
    parts = row.get("shapes", [{}])
    return replace(space, classes=tuple(_class(space, name, made, parts, where) for name, made in rows.items()))


def _class(space: Space, name: str, row: Mapping[str, Any], parts: Sequence[Dims], where: str) -> ShapeClass:
    """A class of a space: each of its shapes put together with each of the space's `parts`."""
    where = f"{where}: class {name}"
    check_keys(row, _CLASS, where, ("keep", "where", "cold"))
    order = dimensions(space.op)
    shapes: list[Dims] = []
    for own in row["shapes"]:
        for part in parts:
            joined = {**part, **own}
            if set(joined) != set(order):
                raise UsageError(f"{where}: {space.op} has dimensions {', '.join(order)}, not {', '.join(joined)}")
            shapes.append({dim: joined[dim] for dim in order})
    conditions, keep = tuple(row.get("where", ())), tuple(row.get("keep", ()))
    made = ShapeClass(name, conditions, tuple(shapes), keep, row.get("cold", True))
    _among({n for c in made.where for n in expression_names(c)}, order, "dimension", where)
    for keep in (*space.keep, *made.keep):
        _among(expression_names(keep), {*space.constants, *space.hints, ITEMSIZE}, "constant or hint", where)
    _among(space.sizes, order, "dimension", where)
    if several := [name for name in space.sizes if len({dims[name] for dims in shapes}) > 1]:
        raise UsageError(f"{where}: {', '.join(several)} is compiled in, so that all its shapes must have the same")
    for dims in shapes:
        try:
            holds = made.holds(dims)
        except UsageError as error:  # it divides by zero
            raise UsageError(f"{where}: {error.args[0]}", hint=error.hint) from error
        if not holds:
            raise UsageError(f"{where}: its own shape {shape_name(dims)} does not meet its conditions")
    return made


def _check_equal_classes(path: Path, spaces: Sequence[Space]) -> None:
    """Check that classes with the same name, in spaces of the same op and dtype, have the same sizes: they compete."""
    seen: dict[tuple[str, str, str], tuple[Space, ShapeClass]] = {}
    for space in spaces:
        for dtype in space.dtypes:
            for made in space.classes:
                other, first = seen.setdefault((space.op, dtype, made.name), (space, made))
                if (made.where, made.shapes, made.cold) != (first.where, first.shapes, first.cold):
                    raise UsageError(
                        f"{path}: class {made.name} of {space.name} has other sizes than that of {other.name}",
                        hint="both are for one op and dtype: use shared classes, or other names",
                    )


def _among(names: Iterable[str], known: Iterable[str], what: str, where: str) -> None:
    listed = list(known)
    if unknown := [name for name in names if name not in listed]:
        raise UsageError(f"{where}: there is no {what} {', '.join(unknown)}", hint=f"one of {', '.join(listed)}")
