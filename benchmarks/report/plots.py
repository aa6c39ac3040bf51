"""Draws results: the speed relative to PyTorch, the distance to the roofline, and how time and memory grow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchain.errors import UsageError
from toolchain.files import write_whole

from ..cases.roofline import Work
from .result import AGAINST, BenchmarkRow, Results
from .svg import FONT, Panel, Picture, Scale, around
from .table import headline

COLORS = ("#2b6cb0", "#dd6b20", "#6b46c1")  # of the sources, in the order in which they first come
PEER, FLOOR = "#555555", "#2f855a"
LINE, LABELS, BARS = 17, 330, 420  # pixels: a bar's line, the cases' names, the longest bar
DASH = "6 4"


def write_plots(results: Results, folder: Path) -> list[Path]:
    """Write each SVG for which the results have data. Raises UsageError if there is none, and OSError."""
    drawn = {"ratios.svg": ratios(results), "roofline.svg": roofline(results), "scaling.svg": scaling(results)}
    found = {name: picture for name, picture in drawn.items() if picture is not None}
    if not found:
        raise UsageError(
            "there is nothing to draw: no case in these results has a valid time", hint="see the table command"
        )
    for name, picture in found.items():
        write_whole(folder / name, picture.render(), parents=True)
    return [folder / name for name in found]


def _sources(rows: Sequence[BenchmarkRow]) -> Mapping[str, str]:
    """Each source's color."""
    names = list(dict.fromkeys(row.source for row in rows))
    return {name: COLORS[index % len(COLORS)] for index, name in enumerate(names)}


def _lines(results: Results) -> list[BenchmarkRow]:
    """A row per case and source, beside PyTorch's fastest. Times of another bundle's kernels are only in the table."""
    return headline([row for row in results.rows if row.peer_kind != AGAINST])


def _subtitle(results: Results) -> str:
    found = results.environment
    torch = found.get("packages", {}).get("torch", "")
    return f"{found.get('gpu', '')}, driver {found.get('driver', '')}, PyTorch {torch}"


def ratios(results: Results) -> Picture | None:
    """A bar per case and source: the fastest peer's time over ours, with its 95 % interval."""
    rows = [row for row in _lines(results) if row.ratio is not None and row.group != "scaling"]
    if not rows:
        return None
    colors, cases = _sources(rows), list(dict.fromkeys(row.case for row in rows))
    block = LINE * len(colors) + 9
    picture = Picture(LABELS + BARS + 90, 96 + block * len(cases), "Speed against the fastest way in PyTorch")
    picture.text(
        12, 22, "Times as fast as the fastest way in PyTorch (its time over ours), with 95 % intervals", size=FONT + 2
    )
    picture.text(12, 40, _subtitle(results), color=PEER)
    top, bottom = 62, 62 + block * len(cases)
    highest = max(row.ratio_high or 0 for row in rows)
    scale = Scale(0, max(1.2, 1.08 * highest), LABELS, LABELS + BARS)
    for tick in scale.ticks():
        picture.line(scale(tick), top, scale(tick), bottom, "#dddddd")
        picture.text(scale(tick), bottom + FONT + 4, f"{tick:g}", "middle")
    places = {(case, s): top + i * block + 5 + j * LINE for i, case in enumerate(cases) for j, s in enumerate(colors)}
    for row in rows:
        at = places[row.case, row.source]
        picture.bar(scale.start, at, scale(row.ratio or 0) - scale.start, LINE - 4, colors[row.source])
    picture.line(scale(1), top, scale(1), bottom, "#000000", 1.5)
    for row in rows:
        _interval(picture, scale, places[row.case, row.source] + (LINE - 4) / 2, row)
    for index, case in enumerate(cases):
        picture.text(LABELS - 8, top + index * block + 4 + block / 2, case, "end")
    picture.legend(LABELS + BARS - 60, 40, [(name, color, "") for name, color in colors.items()])
    return picture


def _interval(picture: Picture, scale: Scale, y: float, row: BenchmarkRow) -> None:
    ratio, low, high = row.ratio or 0, row.ratio_low or 0, row.ratio_high or 0
    picture.line(scale(low), y, scale(high), y, "#000000", 1.2)
    for end in (low, high):
        picture.line(scale(end), y - 4, scale(end), y + 4, "#000000", 1.2)
    picture.text(scale(max(ratio, high)) + 6, y + 4, f"{ratio:.2f}", size=FONT - 1)


def roofline(results: Results) -> Picture | None:
    """The roofline: for each case with products, its speed over its FLOP per byte, below the two measured rates."""
    rows = [row for row in _lines(results) if row.ours_ms and row.flops and row.group != "scaling"]
    if not rows or not results.ceilings:
        return None
    memory, compute = results.ceilings["bytes_per_s"] / 1e12, results.ceilings["flops_per_s"] / 1e12

    def reached(row: BenchmarkRow, ms: float) -> tuple[float, float]:
        return Work(row.nbytes, row.flops).intensity, row.flops / ms / 1e9  # FLOP/byte, TFLOP/s

    ours = [(row, *reached(row, row.ours_ms)) for row in rows if row.ours_ms]
    peers = [(row, *reached(row, row.peer_ms)) for row in rows if row.peer_ms and row.best]
    points = [*ours, *peers]
    picture = Picture(860, 560, "Roofline")
    picture.text(12, 22, "Roofline: each case below the measured rates of memory and matrix units", size=FONT + 2)
    picture.text(12, 40, _subtitle(results), color=PEER)
    low, high = around([x for _, x, _ in points])
    bottom, top = around([*(y for _, _, y in points), compute, memory * low])
    panel = Panel(picture, Scale(low, high, 70, 830, log=True), Scale(bottom, top, 500, 70, log=True))
    panel.frame("", "FLOP per byte", "TFLOP/s")
    knee = min(max(compute / memory, low), high)
    roof = [(x, min(compute, memory * x)) for x in (low, knee, high)]
    panel.curve(roof, FLOOR, "rate", dots=False)
    colors = _sources(rows)
    for row, x, y in peers:
        picture.dot(panel.x(x), panel.y(y), PEER, f"{row.case}, {row.peer}: {y:.3g} TFLOP/s", filled=False)
    for row, x, y in ours:
        picture.dot(panel.x(x), panel.y(y), colors[row.source], f"{row.case}, {row.source}: {y:.3g} TFLOP/s")
    named = [(name, color, "") for name, color in colors.items()]
    rates = f"{memory:.2f} TB/s and {compute:.0f} TFLOP/s, measured"
    picture.legend(560, 420, [*named, ("fastest peer (hollow)", PEER, ""), (rates, FLOOR, "")])
    return picture


@dataclass(frozen=True)
class _Axis:
    """The size that a scaling panel varies: how to read it from a row, and its name."""

    name: str
    label: str
    of: Callable[[BenchmarkRow], float]


AXES = (
    _Axis("T", "tokens T, B = 1", lambda row: row.dims["T"]),
    _Axis("B", "sequences B, T = 64", lambda row: row.dims["B"]),
    _Axis("size", "model, MB of weights, B = 1, T = 1024", lambda row: (row.model_bytes or 0) / 1e6),
)


def scaling(results: Results) -> Picture | None:
    """Time above, peak memory below, over what each scaling case varies."""
    everything = [row for row in _lines(results) if row.group == "scaling" and row.ours_ms]
    axes = [axis for axis in AXES if any(row.axis == axis.name for row in everything)]
    if not axes:
        return None
    wide = 340
    picture = Picture(30 + wide * len(axes), 760, "Scaling of the forward pass")
    picture.text(12, 22, "The forward pass over texts, batches and models", size=FONT + 2)
    picture.text(12, 40, _subtitle(results), color=PEER)
    colors = _sources(everything)
    for index, axis in enumerate(axes):
        rows = sorted((row for row in everything if row.axis == axis.name), key=axis.of)
        left = 75 + index * wide
        _panel(picture, axis, rows, colors, (left, left + wide - 95, 330, 85), "ms", _TIMES)
        _panel(picture, axis, rows, colors, (left, left + wide - 95, 640, 395), "MB at most", _MEMORY)
    named = [*((name, color, "") for name, color in colors.items()), ("fastest peer", PEER, "")]
    picture.legend(75, 700, [*named, ("floor; weights alone", FLOOR, DASH)])
    return picture


# Of a row: ours, the peer's, and the least there can be.
_Values = tuple[
    Callable[[BenchmarkRow], float | None],
    Callable[[BenchmarkRow], float | None],
    Callable[[BenchmarkRow], float | None],
]
_TIMES: _Values = (lambda row: row.ours_ms, lambda row: row.peer_ms, lambda row: row.floor_ms)
_MEMORY: _Values = (
    lambda row: row.ours_peak_bytes and row.ours_peak_bytes / 1e6,
    lambda row: row.peer_peak_bytes and row.peer_peak_bytes / 1e6,
    lambda row: row.model_bytes and row.model_bytes / 1e6,
)


def _panel(
    picture: Picture, axis: _Axis, rows: Sequence[BenchmarkRow], colors: Mapping[str, str],
    box: tuple[float, float, float, float], unit: str, values: _Values,
) -> None:  # fmt: skip
    """`box`: left, right, bottom, top."""
    ours, peer, least = values
    first = next(iter(colors))
    curves = [
        (name, color, "", [(axis.of(r), ours(r)) for r in rows if r.source == name]) for name, color in colors.items()
    ]
    one = [row for row in rows if row.source == first]
    curves.insert(0, ("peer", PEER, "", [(axis.of(r), peer(r)) for r in one]))
    curves.insert(0, ("least", FLOOR, DASH, [(axis.of(r), least(r)) for r in one]))
    drawn = [(name, color, dash, [(x, y) for x, y in points if y]) for name, color, dash, points in curves]
    ys = [y for *_, points in drawn for _, y in points]
    xs = [x for *_, points in drawn for x, _ in points]
    if not ys or min(xs) <= 0:
        return
    left, right, bottom, top = box
    low, high = around(xs)
    panel = Panel(picture, Scale(low, high, left, right, log=True), Scale(*around(ys), bottom, top, log=True))
    panel.frame("", axis.label, unit)
    for name, color, dash, points in drawn:
        panel.curve(points, color, name, dash, dots=not dash)
