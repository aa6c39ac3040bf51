"""Policy: the numbers that decide, on one target, which ops a model's shapes take and which tile is the cheapest.

They were measured on a device, so they stand in the `[policy]` of a table of entries: `entries/<target>.toml`, or
`entries/portable.toml` for every target without one. A bundle carries the policies of its targets, so that a GPU
machine needs no tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from .errors import UsageError
from .tables import Check, check_keys, integers_list, is_integer, natural, table_of

SQUARES = "squares"  # the list of tiles that decides how wide the parts of the row sums of squares are
Tile = tuple[int, int, int]  # rows, columns, and what one takes


@dataclass(frozen=True)
class TileCost:
    """When an entry's tile is the cheapest of several. `tiles`: the entry's own first, then those that it is compared
    with; what a tile takes is in one unit, such as microseconds for a K of 1024. `sms`: multiprocessors of the device
    that this was measured on, not of the one that runs, so that the interpreter chooses what the GPU does. `rounds`:
    the most rounds that the entry's tiles may take; 0 for any number."""

    sms: int
    tiles: tuple[Tile, ...]
    rounds: int = 0

    def unmet(self, rows: int, columns: int) -> str | None:
        """Why a result of this size should be made with another tile, or None if it should not."""
        own, *others = self.tiles
        cost = self._cost(own, rows, columns)
        if self.rounds and rounds(self.sms, rows, columns, own) > self.rounds:
            return f"tiles of {own[0]} x {own[1]} take more than {self.rounds} rounds of {self.sms}"
        cheaper = next((other for other in others if self._cost(other, rows, columns) < cost), None)
        return cheaper and f"tiles of {cheaper[0]} x {cheaper[1]} are cheaper than of {own[0]} x {own[1]}"

    def _cost(self, tile: Tile, rows: int, columns: int) -> int:
        return tile[2] * rounds(self.sms, rows, columns, tile)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> TileCost:
        return cls(row["sms"], tuple(_tile(tile) for tile in row["tiles"]), row["rounds"])


def rounds(sms: int, rows: int, columns: int, tile: Tile) -> int:
    """In how many rounds `sms` multiprocessors make a result of tiles, one tile each in a round."""
    blocks = -(-rows // tile[0]) * -(-columns // tile[1])
    return -(-blocks // sms)


@dataclass(frozen=True)
class Fold:
    """How a model's norms are part of its products, in 16 bits: the products before a norm give row sums of squares,
    the products behind it divide by them. `rows`: above so many all norms are.

    The sum of squares of a row is in parts, each of the columns that one tile has. `part_small_m`: columns of a part
    where rows are few. At a width that is a multiple of `part_wide` a part has `part_narrow` columns for up to
    `part_narrow_rows` rows, else `part_wide`. At other widths the cheapest of the policy's `tiles.squares` decides.
    """

    rows: int
    part_small_m: int
    part_narrow: int
    part_narrow_rows: int
    part_wide: int


@dataclass(frozen=True)
class Policy:
    """The policy of one target; `gpt/plan.py` and `gpt/squares.py` apply it to a model.

    `sms`: multiprocessors of the device that the costs were measured on. `tiles`: lists of tiles by name, in order of
    preference: of tiles that cost the same the first is taken.

    `chunk_bytes`, `min_chunks`: bytes of hidden layer that go through the layers together, and how many such chunks
    there must be before a batch is divided.

    `split_k`: parts that the MLP's second product has its K in where the rows are few: from 2 to `split_k_rows`. In 16
    bits and at a width of `panel_width`, for which there are kernels that read a panel of weights at once, from 1 to
    `panel_rows`; 0 where there are none.

    `spans`: positions of a cache that one block of decode_attention takes, the longest first; `spans_per_sm`: blocks
    for each multiprocessor that are enough. `unsplit_head`: the head size for which one block takes all of a cache
    where there are enough sequences.

    `fold`: None where norms are launches of their own.
    """

    sms: int
    chunk_bytes: int
    min_chunks: int
    split_k: int
    split_k_rows: int
    panel_width: int
    panel_rows: int
    spans: tuple[int, ...]
    spans_per_sm: float
    unsplit_head: int
    fold: Fold | None
    tiles: Mapping[str, tuple[Tile, ...]]

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str) -> Policy:
        """The policy of a TOML table or of a manifest. Raises UsageError naming what is wrong and `where`."""
        check_keys(table, KEYS, where, ("fold", "tiles"))
        fold = table.get("fold")
        if fold is not None:
            check_keys(fold, FOLD, f"{where}: fold")
        tiles = {name: tuple(_tile(tile) for tile in listed) for name, listed in table.get("tiles", {}).items()}
        for name, listed in tiles.items():
            if not listed or len({tile[:2] for tile in listed}) < len(listed):
                raise UsageError(f"{where}: tiles.{name} must name at least one tile, and each once")
        if fold is not None and SQUARES not in tiles:
            raise UsageError(f"{where}: with a fold it needs tiles.{SQUARES}")
        made = Fold(**fold) if fold is not None else None
        fields: dict[str, Any] = dict(table)
        fields.update(spans=tuple(table["spans"]), fold=made, tiles=tiles)
        return cls(**fields)

    def to_json(self) -> dict[str, Any]:
        """As `from_table` takes it."""
        tiles = {name: [list(tile) for tile in listed] for name, listed in self.tiles.items()}
        fold = {"fold": asdict(self.fold)} if self.fold else {}
        return {**asdict(self), "spans": list(self.spans), "fold": None, "tiles": tiles} | fold

    def cost(self, name: str, tile: tuple[int, int], most_rounds: int = 0) -> TileCost:
        """When that tile is the cheapest of the list `name`, from its own place in the list on: those before it have
        been tried by then. Raises UsageError if there is no such list or tile."""
        listed = self.tiles.get(name)
        if listed is None:
            raise UsageError(f"the policy has no tiles {name!r}", hint=f"it has {', '.join(self.tiles)}")
        at = next((i for i, other in enumerate(listed) if other[:2] == tile), None)
        if at is None:
            raise UsageError(f"the policy's tiles {name!r} have no tile of {tile[0]} x {tile[1]}")
        return TileCost(self.sms, listed[at:], most_rounds)


def _tile(value: Sequence[int]) -> Tile:
    rows, columns, cost = value
    return rows, columns, cost


def _tiles(value: Any) -> bool:
    rows = cast("list[Any]", value) if isinstance(value, list) else [None]
    return all(
        isinstance(row, list) and len(cast("list[Any]", row)) == 3 and all(is_integer(n) and n > 0 for n in row)
        for row in rows
    )


def _table(value: Any) -> str | None:
    return None if value is None or isinstance(value, dict) else "a table"


def _share(value: Any) -> str | None:
    return None if isinstance(value, float) and value > 0 else "a positive number with a point"


KEYS: Mapping[str, Check] = {
    "sms": natural, "chunk_bytes": natural, "min_chunks": natural, "split_k": natural, "split_k_rows": natural,
    "panel_width": natural, "panel_rows": natural, "spans": integers_list, "spans_per_sm": _share,
    "unsplit_head": natural, "fold": _table, "tiles": table_of(_tiles, "lists of [rows, columns, cost]"),
}  # fmt: skip
FOLD: Mapping[str, Check] = {
    "rows": natural, "part_small_m": natural, "part_narrow": natural, "part_narrow_rows": natural, "part_wide": natural,
}  # fmt: skip
