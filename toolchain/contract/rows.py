"""From a row of a table to the entries that it gives to a source. The head of portable.toml describes rows."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import UsageError
from ..tables import integers, table_of
from .entry import EntrySpec
from .op import ops
from .policy import Policy, TileCost
from .sources import registered

ALL_ARRAYS = "*"  # in `aligned`: every array but those of i32

hints_by_target = table_of(lambda value: integers(value) is None, "tables of integers")


def specs_of(row: Mapping[str, Any], source: str, target: str | None, policy: Policy | None = None) -> list[EntrySpec]:
    """The entries of one row for a source: one for each op, value of `each` and dtype. A row with `sizes` gives two
    instead: the first has the sizes compiled in, the second takes any sizes. The second is left out if the row's
    conditions allow only these sizes (`C == BC + BR`). `only` keeps one of the two: "sized" or "any". The symbol is
    `<op>[_<variant>][_<sizes>]_<dtype>`. Raises UsageError."""
    if source not in row.get("sources", _unnamed(source)):
        return []
    return [
        spec
        for op in row["ops"]
        for values in _choices(row.get("each", {}))
        for spec in _specs(_filled(row, op, values), source, target, policy)
    ]


def _unnamed(source: str) -> Sequence[str]:
    """The sources of a row that names none: every one that takes such rows."""
    known = registered().get(source)
    return () if known is not None and known.named_rows else (source,)


def _choices(each: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    for chosen in itertools.product(*each.values()):
        yield dict(zip(each, chosen, strict=True))


def _filled(row: Mapping[str, Any], op: str, values: Mapping[str, int]) -> dict[str, Any]:
    """The row for one op and one value of each constant in `each`. Names in braces are replaced by these values."""
    named = {"op": op, **values}

    def fill(value: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda match: str(named.get(match[1], match[0])), value)

    filled = {key: fill(value) if isinstance(value, str) else value for key, value in row.items()}
    filled |= {key: [fill(value) for value in row[key]] for key in ("where", "grid") if key in row}
    return filled | {"op": op, "constants": {**values, **row.get("constants", {})}}


def _specs(row: Mapping[str, Any], source: str, target: str | None, policy: Policy | None) -> Iterator[EntrySpec]:
    constants: Mapping[str, int] = row["constants"]
    variant = row.get("variant", "x".join(map(str, constants.values())))
    x, y, z = row["grid"]
    hints = row.get("hints", {})
    if hints and target is not None:
        hints = {target: hints}
    if wanted := hints_by_target(hints):
        raise UsageError(f"hints is {hints!r}, not {wanted}")
    fixed: Mapping[str, int] = row.get("sizes", {})
    made = _made(row, fixed, constants)
    cost = _cost(row, policy)
    for dtype, sizes in itertools.product(row["dtypes"], made):
        named = "_".join(f"{dim}{size}" for dim, size in sizes.items())
        yield EntrySpec(
            symbol="_".join(filter(None, (row["op"], variant, named, dtype))),
            op=row["op"],
            source=source,
            dtype=dtype,
            constants=constants,
            aligned=_aligned(row),
            where=tuple(row.get("where", ())),
            grid=(x, y, z),
            hints=hints,
            multiples=row.get("multiples", {}),
            kernel=row.get("kernel", ""),
            targets=(target,) if target else (),
            sizes=sizes,
            contiguous=tuple(row.get("contiguous", ())),
            cost=cost,
        )


def _made(
    row: Mapping[str, Any], fixed: Mapping[str, int], constants: Mapping[str, int]
) -> Sequence[Mapping[str, int]]:
    """The compiled-in sizes of each entry that a row gives."""
    only = row.get("only")
    if fixed.keys() <= _pinned(row.get("where", ()), constants):
        if only is not None:
            raise UsageError(f"only is {only!r}, but the row gives one entry", hint="leave it out")
        return [fixed]
    return {"sized": [fixed], "any": [{}], None: [fixed, {}]}[only]


def _aligned(row: Mapping[str, Any]) -> tuple[str, ...]:
    named = row.get("aligned", ())
    if list(named) != [ALL_ARRAYS]:
        return tuple(named)
    return tuple(p.name for p in ops()[row["op"]].params if p.dims and p.dtype != "i32")


def _cost(row: Mapping[str, Any], policy: Policy | None) -> TileCost | None:
    """The condition that the row's tile is the cheapest. The tile is BM x BN, or BM x (BN + BR) for split-N."""
    if "tiles" not in row and "rounds" not in row:
        return None
    if policy is None:
        raise UsageError("tiles and rounds need a [policy], which this table lacks")
    constants = row["constants"]
    tile = (constants["BM"], constants["BN"] + constants.get("BR", 0))
    if "tiles" in row:
        return policy.cost(row["tiles"], tile, row.get("rounds", 0))
    return TileCost(policy.sms, ((*tile, 1),), row["rounds"])


def _pinned(conditions: Sequence[str], constants: Mapping[str, int]) -> set[str]:
    """The dimensions for which the conditions allow only one size, such as `C == BC + BR`."""
    sides = (condition.partition(" == ") for condition in conditions)
    return {dim for dim, _, size in sides if size and constants.keys() >= set(re.findall(r"[A-Za-z_]\w*", size))}
