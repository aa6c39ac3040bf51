"""Policy: the numbers that decide, for one target, which ops are used for a model's shapes and which tile is cheapest.

They were measured on a device, so they are in the `[policy]` of a table of entries: `entries/<target>.toml`, or
`entries/portable.toml` for every target without its own. A bundle contains the policies of its targets, so that a GPU
machine needs no tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from ..errors import UsageError
from ..tables import Check, check_keys, integers_list, is_integer, natural, table_of

SQUARES = "squares"  # the list of tiles that decides the width of the parts of the row sums of squares
FEW = "few"  # the list of those that do so where there are few rows
Tile = tuple[int, int, int]  # rows, columns, and the cost of one tile


@dataclass(frozen=True)
class TileCost:
    """The condition that an entry's tile is the cheapest of several. `tiles`: the entry's own tile, then those that it
    is compared with; all costs are in the same unit, such as microseconds for a K of 1024. `sms`: the multiprocessors
    of the device that was measured, not of the one that runs, so that the interpreter chooses the same entry as the
    GPU. `rounds`: the most rounds that the entry's tiles may take; 0 for any number."""

    sms: int
    tiles: tuple[Tile, ...]
    rounds: int = 0

    def unmet(self, rows: int, columns: int) -> str | None:
        """The reason to compute a result of this size with another tile, or None if there is none."""
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
    """The number of rounds in which `sms` multiprocessors compute all tiles of a result, one tile each per round."""
    blocks = -(-rows // tile[0]) * -(-columns // tile[1])
    return -(-blocks // sms)


@dataclass(frozen=True)
class Fold:
    """How a model's norms are folded into its products, in 16 bits: the product before a norm also computes row sums of
    squares, and the product after the norm divides by the root of their mean. `rows`: above this number of rows all
    norms are folded.

    The sum of squares of a row is stored in parts; each part covers the columns of one tile. `part_small_m`: the
    columns of a part for small M, `part_all_k` those where the products read all of K at once. At a width that is a
    multiple of `part_wide`, a part has `part_narrow` columns for up to `part_narrow_rows` rows, else `part_wide`. At
    other widths the cheapest tile of the policy's `tiles.squares` decides.

    Of a model of the policy's `panel_width` all norms are folded for up to `few_rows` rows too, if these are too many
    for one round of the kernels that read panels, and few enough for one round of a tile of the list `few`: a part has
    the columns of the first such tile.

    `merged_spans`: up to this number of spans of a cache the product behind attention merges them itself, for one row.
    """

    rows: int
    part_small_m: int
    part_all_k: int
    part_narrow: int
    part_narrow_rows: int
    part_wide: int
    merged_spans: int
    few_rows: int = 0


@dataclass(frozen=True)
class Policy:
    """The policy of one target; `gpt/passes/plan.py` and `gpt/passes/squares.py` apply it to a model.

    `sms`: multiprocessors of the device that the costs were measured on. `tiles`: lists of tiles by name, in order of
    preference; if several tiles cost the same, the first is taken. A list `NAME_SOURCE` takes the place of `NAME` for a
    model with the kernels of that source, and the numbers in `sources.SOURCE` that of the policy's own.

    `chunk_bytes`, `min_chunks`: a batch is divided into chunks that go through the layers one after the other. They
    give the bytes of hidden layer in a chunk, and the number of chunks from which on a batch is divided at all.
    `panel_chunk_bytes`: those of a model of `panel_width`, if they are others; 0 if not.

    `split_k`: the number of parts into which the K of the MLP's second product is split for small M, that is for 2 to
    `split_k_rows` rows, and for one row of a model wider than `panel_width`. In 16 bits and at that width, where
    kernels exist that read a whole panel of weights at once, it is split for 1 to `panel_rows` rows; that is 0 if there
    are none.

    `spans`: the numbers of cache positions that a block of decode_attention may take, the longest first.
    `spans_per_sm`: the number of blocks for each multiprocessor that is enough. `unsplit_head`: the head size for which
    one block takes a whole cache if there are enough sequences.

    `fold`: None if norms are separate launches.

    `nccl_from`: the bytes of a message from which a collective goes through NCCL where that is open, by its name. One
    that is not named never does.
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
    nccl_from: Mapping[str, int] = field(default_factory=dict[str, int])
    sources: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    panel_chunk_bytes: int = 0

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str) -> Policy:
        """The policy of a TOML table or of a manifest. Raises UsageError naming what is wrong and `where`."""
        check_keys(table, KEYS, where, OPTIONAL)
        for source, own in table.get("sources", {}).items():
            check_keys(own, OF_SOURCES, f"{where}: sources.{source}", list(OF_SOURCES))
        fold = table.get("fold")
        if fold is not None:
            check_keys(fold, FOLD, f"{where}: fold", ("few_rows",))
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
        """The policy as a table that `from_table` reads."""
        tiles = {name: [list(tile) for tile in listed] for name, listed in self.tiles.items()}
        fold = {"fold": asdict(self.fold)} if self.fold else {}
        made = {**asdict(self), "spans": list(self.spans), "fold": None, "tiles": tiles} | fold
        return {key: value for key, value in made.items() if value or key not in UNSAID}

    def of(self, source: str) -> Policy:
        """The policy with the tiles `NAME_SOURCE` for `NAME`, where there are such: those that one source has kernels
        for; and with the numbers of that source."""
        ending = f"_{source}"
        own = {name.removesuffix(ending): listed for name, listed in self.tiles.items() if name.endswith(ending)}
        numbers: Mapping[str, Any] = self.sources.get(source, {})
        return replace(self, tiles={**self.tiles, **own}, **numbers) if own or numbers else self

    def cost(self, name: str, tile: tuple[int, int], most_rounds: int = 0) -> TileCost:
        """The condition that a tile is the cheapest of the list `name`. It is compared with the later tiles only, since
        earlier ones have been tried before. Raises UsageError if there is no such list or tile."""
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
    "unsplit_head": natural, "fold": _table, "panel_chunk_bytes": natural,
    "nccl_from": table_of(is_integer, "bytes"), "sources": _table,
    "tiles": table_of(_tiles, "lists of [rows, columns, cost]"),
}  # fmt: skip
UNSAID = ("nccl_from", "sources", "panel_chunk_bytes")  # in a manifest, where they are empty
OPTIONAL = ("fold", "tiles", *UNSAID)
OF_SOURCES: Mapping[str, Check] = {name: KEYS[name] for name in ("chunk_bytes", "panel_chunk_bytes")}
FOLD: Mapping[str, Check] = {
    "rows": natural, "part_small_m": natural, "part_all_k": natural, "part_narrow": natural,
    "part_narrow_rows": natural, "part_wide": natural, "merged_spans": natural, "few_rows": natural,
}  # fmt: skip
