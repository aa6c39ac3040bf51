"""Which source has the fastest entry of an op: what the virtual source `fastest` goes by (sources.toml).

`tilestack tune fastest` measures the entries that each source would launch, and writes a row for each class of shapes
to the table `[fastest]` of `entries/<target>.toml`. A bundle has the rows of its targets, so that a GPU
machine needs no tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import UsageError
from ..tables import Check, check_keys, is_number, is_table, table_of, tables, text, texts
from .expressions import evaluate, expression_names
from .op import DTYPES, ops

_times = table_of(
    lambda by_source: isinstance(by_source, dict) and all(map(is_number, by_source.values())),
    "tables of microseconds by source",
)
ROW: Mapping[str, Check] = {
    "op": text, "class": text, "dtypes": texts, "source": text, "where": texts, "us": _times, "slower_in": texts,
    "by_passes": text, "gpu": text,
}  # fmt: skip
OPTIONAL = ("by_passes", "gpu")  # keys that a row without them does not have
# How the rows were measured.
HEAD: Mapping[str, Check] = {
    "gpu": text, "driver": text, "date": text, "dtype": text, "row": tables,
}  # fmt: skip


@dataclass(frozen=True)
class Pick:
    """The fastest source of an op for the sizes that meet `where`. `us`: the median time of one launch in microseconds,
    by shape and source. `slower_in`: passes of a model that were slower with the source of the least time, so that
    another is taken. `by_passes`: what whole passes of a model said, if they alone decided on the source, and not the
    times: tuning keeps such a row. `gpu`: where the times are from, if not from the GPU of the whole table."""

    op: str
    shape_class: str
    dtypes: tuple[str, ...]
    source: str
    where: tuple[str, ...]
    us: Mapping[str, Mapping[str, float]]
    slower_in: tuple[str, ...] = ()
    by_passes: str = ""
    gpu: str = ""

    def takes(self, op: str, dtype: str, dims: Mapping[str, int]) -> bool:
        """Whether it is for a launch of these sizes."""
        return op == self.op and dtype in self.dtypes and all(evaluate(said, dims) for said in self.where)

    @classmethod
    def from_table(cls, row: Mapping[str, Any], where: str) -> Pick:
        """Raises UsageError that says what is wrong and `where`."""
        check_keys(row, ROW, where, ("where", "slower_in", *OPTIONAL))
        where = f"{where} ({row['op']} {row['class']})"
        if row["op"] not in ops():
            raise UsageError(f"{where}: no op {row['op']} in ops.toml", hint=f"one of {', '.join(ops())}")
        if unknown := [dtype for dtype in row["dtypes"] if dtype not in DTYPES]:
            raise UsageError(f"{where}: no dtype {unknown[0]}", hint=f"one of {', '.join(DTYPES)}")
        dims = {dim for param in ops()[row["op"]].params for dim in param.dims}
        for said in row.get("where", ()):
            if odd := expression_names(said) - dims:
                raise UsageError(f"{where}: {said!r} uses unknown {', '.join(sorted(odd))}")
        if odd := [shape for shape, times in row["us"].items() if row["source"] not in times]:
            raise UsageError(f"{where}: {row['source']} has no time at {odd[0]}")
        return cls(
            row["op"], row["class"], tuple(row["dtypes"]), row["source"], tuple(row.get("where", ())), row["us"],
            tuple(row.get("slower_in", ())), *(row.get(key, "") for key in OPTIONAL),
        )  # fmt: skip

    def to_table(self) -> dict[str, Any]:
        """The row that `from_table` reads."""
        row = asdict(self)
        row["class"] = row.pop("shape_class")
        said = [key for key in ROW if key not in OPTIONAL or row[key]]
        return {key: list(row[key]) if isinstance(row[key], tuple) else row[key] for key in said}


@dataclass(frozen=True)
class Fastest:
    """The table `[fastest]` of one target: the rows, and the GPU on which they were measured, in `dtype`."""

    gpu: str
    driver: str
    date: str
    dtype: str
    picks: tuple[Pick, ...]

    @classmethod
    def from_table(cls, table: Any, where: str) -> Fastest:
        """Raises UsageError that says what is wrong and `where`."""
        if wanted := is_table(table):
            raise UsageError(f"{where} is {table!r}, not {wanted}")
        check_keys(table, HEAD, where)
        picks = tuple(Pick.from_table(row, f"{where}: row {number}") for number, row in enumerate(table["row"], 1))
        return cls(table["gpu"], table["driver"], table["date"], table["dtype"], picks)


def picked(picks: Sequence[Pick], op: str, dtype: str, dims: Mapping[str, int]) -> str | None:
    """The source that the first row for these sizes names, or None if there is no such row."""
    return next((pick.source for pick in picks if pick.takes(op, dtype, dims)), None)
