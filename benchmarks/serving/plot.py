"""Draws how waiting grows with the load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..report.svg import FONT, Panel, Picture, Scale, around

COLORS = ("#2b6cb0", "#dd6b20")
PANELS = (
    ("Until the first token", "ms", "first", True), ("Between tokens", "ms", "between", True),
    ("New tokens", "tokens/s", "", False),
)  # fmt: skip
WIDE, HIGH = 300, 240


def picture(rows: Sequence[Mapping[str, Any]], subtitle: str) -> Picture:
    """`rows`: `Served.row` of finite rates, at least two."""
    made = Picture(3 * (WIDE + 80) + 30, HIGH + 140, "Requests of many lengths, by how many are offered a second")
    made.text(12, 22, made.title, size=FONT + 2)
    made.text(12, 40, subtitle)
    rates = [row["rate"] for row in rows]
    low, high = around(rates)
    for index, (title, unit, key, two) in enumerate(PANELS):
        left, bottom = 70 + index * (WIDE + 80), 80 + HIGH
        curves = [(name, [row[f"{key}_{name}_ms"] for row in rows]) for name in ("p50", "p99")] if two else [
            ("", [row["new_per_s"] for row in rows])
        ]  # fmt: skip
        y = Scale(*around([value for _, values in curves for value in values]), bottom, 80, log=True)
        panel = Panel(made, Scale(low, high, left, left + WIDE, log=True), y)
        panel.frame(title, "requests offered a second", unit)
        for (name, values), color in zip(curves, COLORS, strict=False):
            panel.curve(list(zip(rates, values, strict=True)), color, name or title)
        if two:
            made.legend(left + 12, 96, [(name, color, "") for (name, _), color in zip(curves, COLORS, strict=True)])
    return made
