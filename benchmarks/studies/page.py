"""`python -m benchmarks.studies.page`: writes the tables of docs/studies.md anew, from the results."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolchain.files import write_whole
from toolchain.knobs import ROOT

from .plots import MEGABYTE, RESULTS

PAGE = ROOT / "docs/studies.md"
_PLACE = re.compile(r"(<!-- (?!end )(?P<name>[\w-]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    align = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, align, *rows)) + "\n"


def one_op(found: Mapping[str, Any], seconds: Sequence[Mapping[str, Any]]) -> str:
    """The fastest variant of each language, and how long its compiler takes."""
    took = {(row["op"], row["language"]): f"{row['seconds']:.2f}" for row in seconds}
    rows: list[list[str]] = []
    for op in dict.fromkeys(row["op"] for row in found["rows"]):
        own = [row for row in found["rows"] if row["op"] == op]
        for language in dict.fromkeys(row["language"] for row in own):
            same = [row for row in own if row["language"] == language]
            best = min(same, key=lambda row: row["us"])
            slowest = max(row["us"] for row in same)
            rows.append(
                [f"{op}, {language}", str(best["lines"]), took.get((op, language), "-"), f"{best['us']:.1f}",
                 f"{best['share']:.0%}", f"{best['spread']:.0%}", f"{slowest:.1f}", f"{best['error']:.1e}"]
            )  # fmt: skip
    head = ["op, language", "lines", "compile, s", "µs", "of the roof", "spread", "slowest variant, µs", "error"]
    return _table(head, rows)


def deploy(found: Mapping[str, Any]) -> str:
    """What both sides take on disk, by package."""
    rows: list[list[str]] = []
    for side, sizes in found["disk"].items():
        largest = sorted(sizes.items(), key=lambda item: -item[1])[:5]
        parts = ", ".join(f"{name} {size / MEGABYTE:.1f}" for name, size in largest)
        rows.append([side, f"{sum(sizes.values()) / MEGABYTE:.0f}", parts])
    return _table(["side", "MB", "the largest parts, MB"], rows)


def depth(found: Mapping[str, Any]) -> str:
    """A row for each dtype: ours, and PyTorch's behind it."""
    layers = sorted({row["layers"] for row in found["rows"]})
    rows: list[list[str]] = []
    for dtype in dict.fromkeys(row["dtype"] for row in found["rows"]):
        for side, key in (("ours", "error"), ("PyTorch", "pytorch_error")):
            values = {row["layers"]: row[key] for row in found["rows"] if row["dtype"] == dtype and key in row}
            if values:
                rows.append([f"{dtype}, {side}", *(f"{values[n]:.1e}" for n in layers)])
    return _table(["dtype, side", *(f"{n} layers" for n in layers)], rows)


def page(text: str) -> str:
    """The page with its tables made anew."""
    read = {path.stem: json.loads(path.read_text()) for path in RESULTS.glob("*.json")}
    tables = {
        "one-op": one_op(read["one-op"], read["one-op-seconds"]["rows"]), "deploy": deploy(read["deploy"]),
        "depth": depth(read["depth"]),
    }  # fmt: skip
    return _PLACE.sub(lambda match: f"{match[1]}{tables[match['name']]}", text)


def main() -> None:
    write_whole(PAGE, page(PAGE.read_text()))
    print(PAGE)


if __name__ == "__main__":
    main()
