"""Boxes, arrows and grids of cells, for the pictures of the documentation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from benchmarks.report.svg import FONT, INK, Picture

BLUE, GREEN, YELLOW, RED, GREY, PLAIN = "#dbe8fd", "#dff2e4", "#fff0c9", "#fbdcdc", "#eeeeee", "#ffffff"
HEAD = 7  # pixels of an arrow's head


@dataclass
class Drawing(Picture):
    """A picture of boxes. Places are pixels from the upper left corner."""

    def box(self, x: float, y: float, width: float, height: float, text: str = "", fill: str = PLAIN) -> None:
        """A box with lines of text in its middle."""
        place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4"'
        self.parts.append(f"<rect {place} fill={quoteattr(fill)} stroke={quoteattr(INK)}/>")
        lines = text.split("\n") if text else []
        first = y + height / 2 + FONT / 3 - (len(lines) - 1) * (FONT + 3) / 2
        for number, line in enumerate(lines):
            self.text(x + width / 2, first + number * (FONT + 3), line, "middle")

    def arrow(self, x1: float, y1: float, x2: float, y2: float, label: str = "", color: str = "#555555") -> None:
        """A straight arrow to (x2, y2), its label above its middle."""
        turn = math.atan2(y2 - y1, x2 - x1)
        self.line(x1, y1, x2 - HEAD * math.cos(turn) / 2, y2 - HEAD * math.sin(turn) / 2, color, 1.5)
        corners = [(x2 - HEAD * math.cos(turn + side), y2 - HEAD * math.sin(turn + side)) for side in (-0.45, 0.45)]
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(x2, y2), *corners])
        self.parts.append(f'<polygon points="{places}" fill={quoteattr(color)}/>')
        if label:
            self.text((x1 + x2) / 2, (y1 + y2) / 2 - 5, label, "middle", size=FONT - 1)

    def cells(
        self, x: float, y: float, rows: int, columns: int, size: float, fill: Callable[[int, int], str],
        label: Callable[[int, int], str] | None = None,
    ) -> None:  # fmt: skip
        """A grid of squares, each of `size` pixels, filled and labelled by row and column."""
        for row in range(rows):
            for column in range(columns):
                left, top = x + column * size, y + row * size
                place = f'x="{left:.1f}" y="{top:.1f}" width="{size:g}" height="{size:g}"'
                self.parts.append(f'<rect {place} fill={quoteattr(fill(row, column))} stroke="#999999"/>')
                if label is not None and (text := label(row, column)):
                    self.text(left + size / 2, top + size / 2 + 3, text, "middle", size=FONT - 3)
