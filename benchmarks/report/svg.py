"""Just enough SVG for plots: scales with round ticks, panels with axes, marks. The same input gives the same bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

Anchor = Literal["start", "middle", "end"]
FONT = 12
GRID, INK = "#dddddd", "#333333"
HALO = 'stroke="white" stroke-width="3" paint-order="stroke"'  # text stays readable over lines


@dataclass(frozen=True)
class Scale:
    """Maps values low .. high to pixels start .. stop, linearly or by their logarithm."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError(f"no scale from {self.low} to {self.high}")

    def __call__(self, value: float) -> float:
        share = (self._inner(value) - self._inner(self.low)) / (self._inner(self.high) - self._inner(self.low))
        return self.start + share * (self.stop - self.start)

    def _inner(self, value: float) -> float:
        return math.log(value) if self.log else value

    def ticks(self, room: float = 50) -> list[float]:
        """Round values on the scale. On a logarithmic one, 2 and 5 as well as 1 if a decade has `room` pixels."""
        if not self.log:
            step = 10 ** math.floor(math.log10((self.high - self.low) / 4))
            step *= next(m for m in (1, 2, 5, 10) if (self.high - self.low) / (m * step) <= 8)
            return [i * step for i in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)]
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        steps = (1, 2, 5) if abs(self.stop - self.start) >= room * math.log10(self.high / self.low) else (1,)
        return [
            m * 10.0**d for d in decades for m in steps if self.low <= m * 10.0**d * 1.0000001 <= self.high * 1.0001
        ]


@dataclass
class Picture:
    """A canvas of `width` x `height` pixels."""

    width: float
    height: float
    title: str
    parts: list[str] = field(default_factory=list)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, color: str = INK, width: float = 1, dash: str = ""
    ) -> None:
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        self.parts.append(f'<line {ends} stroke="{color}" stroke-width="{width:g}"{dashed}/>')

    def path(self, points: Sequence[tuple[float, float]], color: str, dash: str = "") -> None:
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="1.8"{dashed}/>')

    def bar(self, x: float, y: float, width: float, height: float, color: str) -> None:
        size = f'width="{width:.1f}" height="{height:.1f}"'
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{color}"/>')

    def dot(self, x: float, y: float, color: str, label: str, *, filled: bool = True, radius: float = 3.5) -> None:
        """`label`: what a browser shows over it."""
        inner = color if filled else "white"
        place = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"'
        self.parts.append(f'<circle {place} fill="{inner}" stroke="{color}"><title>{escape(label)}</title></circle>')

    def text(
        self, x: float, y: float, text: str, anchor: Anchor = "start", *,
        size: int = FONT, color: str = INK, turn: bool = False,
    ) -> None:  # fmt: skip
        turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        self.parts.append(f'<text {place} font-size="{size}" fill="{color}" {HALO}{turned}>{escape(text)}</text>')

    def legend(self, x: float, y: float, entries: Sequence[tuple[str, str, str]]) -> None:
        """Entries (label, color, dash) below each other from (x, y) on."""
        for index, (label, color, dash) in enumerate(entries):
            at = y + index * (FONT + 4)
            self.line(x, at - 4, x + 22, at - 4, color, 3, dash)
            self.text(x + 28, at, label)

    def render(self) -> str:
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        label = f'role="img" aria-label={quoteattr(self.title)}'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {label} font-family="Helvetica, Arial, sans-serif">'
        ground = f'<rect width="{self.width:.0f}" height="{self.height:.0f}" fill="white"/>'
        return "\n".join([head, f"<title>{escape(self.title)}</title>", ground, *self.parts, "</svg>", ""])


@dataclass(frozen=True)
class Panel:
    """A plot area in a picture, its axes drawn."""

    picture: Picture
    x: Scale
    y: Scale

    def frame(self, title: str, x_label: str, y_label: str, form: Callable[[float], str] = "{:g}".format) -> None:
        left, right, top, bottom = self.x.start, self.x.stop, self.y.stop, self.y.start
        for tick in self.x.ticks(room=150):  # labels beside each other take more of it
            at = self.x(tick)
            self.picture.line(at, top, at, bottom, GRID)
            self.picture.text(at, bottom + FONT + 4, form(tick), "middle")
        for tick in self.y.ticks():
            at = self.y(tick)
            self.picture.line(left, at, right, at, GRID)
            self.picture.text(left - 6, at + 4, form(tick), "end")
        self.picture.line(left, bottom, right, bottom)
        self.picture.line(left, top, left, bottom)
        self.picture.text((left + right) / 2, top - 10, title, "middle", size=FONT + 1)
        self.picture.text((left + right) / 2, bottom + 2 * FONT + 12, x_label, "middle")
        self.picture.text(left - 44, (top + bottom) / 2, y_label, "middle", turn=True)

    def curve(
        self, points: Sequence[tuple[float, float]], color: str, label: str, dash: str = "", *, dots: bool = True
    ) -> None:
        places = [(self.x(a), self.y(b)) for a, b in points]
        self.picture.path(places, color, dash)
        for (x, y), (a, b) in zip(places, points, strict=True):
            if dots:
                self.picture.dot(x, y, color, f"{label}: {b:.4g} at {a:g}", radius=2.8)


def around(values: Sequence[float]) -> tuple[float, float]:
    """The range of a logarithmic scale that holds all values, with room at its ends."""
    return min(values) / 1.4, max(values) * 1.4
