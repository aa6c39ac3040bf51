"""Makes the variants of a space: one for each choice of constants and hints that some class can use."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from toolchain.contract.entry import EntrySpec
from toolchain.contract.expressions import evaluate
from toolchain.contract.op import ITEMSIZE as BYTES
from toolchain.contract.rows import specs_of
from toolchain.errors import UsageError

from .spaces import ITEMSIZE, Dims, ShapeClass, Space

_NAME = re.compile(r"\b[A-Za-z_]\w*\b")


@dataclass(frozen=True)
class Variant:
    """An entry to try, and the classes of its space that it is tried for. Its `where` is the space's, so that the
    compiled code does not depend on the class."""

    space: str
    classes: tuple[str, ...]
    spec: EntrySpec


def variants(space: Space, source: str, target: str) -> list[Variant]:
    """All variants of a space for one target, in order. Raises UsageError if a class gets none, or if a condition or an
    entry of the space is invalid."""
    try:
        found = [variant for dtype in space.dtypes for variant in _of_dtype(space, dtype, source, target)]
    except UsageError as error:
        raise UsageError(f"space {space.name}: {error.args[0]}", hint=error.hint) from error
    used = {name for variant in found for name in variant.classes}
    if empty := [made.name for made in space.classes if made.name not in used]:
        raise UsageError(
            f"space {space.name}: no variant is kept for class {', '.join(empty)}",
            hint="look at `keep`, and whether `where` and `multiples` hold for the class's shapes",
        )
    return found


def _of_dtype(space: Space, dtype: str, source: str, target: str) -> Iterator[Variant]:
    element = {ITEMSIZE: BYTES[dtype]}
    for constants, hints in itertools.product(_choices(space.constants), _choices(space.hints)):
        names = {**constants, **hints, **element}
        if not all(evaluate(keep, names) for keep in space.keep):
            continue
        for sizes, classes in _by_sizes(space):
            spec = _spec(space, dtype, source, target, constants, hints, sizes)
            usable = tuple(made.name for made in classes if _usable(spec, made, names))
            if usable:
                yield Variant(space.name, usable, spec)


def _by_sizes(space: Space) -> list[tuple[Dims, list[ShapeClass]]]:
    """The space's classes, grouped by the sizes that are compiled in."""
    found: list[tuple[Dims, list[ShapeClass]]] = []
    for made in space.classes:
        sizes = made.sizes(space.sizes)
        same = next((classes for other, classes in found if other == sizes), None)
        if same is None:
            found.append((sizes, [made]))
        else:
            same.append(made)
    return found


def _choices(values: Mapping[str, tuple[int, ...]]) -> list[dict[str, int]]:
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


def _usable(spec: EntrySpec, made: ShapeClass, names: Mapping[str, int]) -> bool:
    return all(evaluate(keep, names) for keep in made.keep) and all(spec.unmet(dims) is None for dims in made.shapes)


def _spec(
    space: Space, dtype: str, source: str, target: str, constants: Mapping[str, int], hints: Mapping[str, int],
    sizes: Dims,
) -> EntrySpec:  # fmt: skip
    """The entry of one choice. Its symbol has the numbers chosen: `linear_128x256x64x8_8x1x1_bf16`."""
    numbers = ["x".join(map(str, chosen.values())) for chosen in (constants, hints)]
    row = {
        "ops": [space.op],
        "dtypes": [dtype],
        "variant": "_".join(filter(None, [space.name.removeprefix(space.op).strip("_"), *numbers])),
        "kernel": space.kernel,
        "constants": dict(constants),
        "sizes": dict(sizes),
        "hints": dict(hints),
        "aligned": space.aligned,
        "multiples": space.multiples,
        "where": space.where,
        "grid": [_NAME.sub(lambda match: str(hints.get(match[0], match[0])), text) for text in space.grid],
    }
    return specs_of(row, source, target)[0]  # the entry with the sizes compiled in
