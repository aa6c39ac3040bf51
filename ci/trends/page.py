"""The page: one file that works from disk, drawn by its script from the data in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..report import html
from .nights import Cell, Machine, Night, subjects
from .steps import TOLERANCE, Step, bisect, changes, same_kernels, series, steps

PAGE = Path(__file__).parent / "page"


def machines(nights: Sequence[Night]) -> list[Machine]:
    """By name, so that an H100 stands left of an H200."""
    return sorted({on for night in nights for on in night.by})


def cells(nights: Sequence[Night]) -> list[Cell]:
    return sorted({cell for night in nights for one in night.by.values() for cell in one.times})


def all_steps(nights: Sequence[Night]) -> list[Step]:
    """The newest first, and of a night the largest."""
    every = (step for cell in cells(nights) for on in machines(nights) for step in steps(nights, cell, on))
    return sorted(every, key=lambda step: (-step.night, -abs(step.change), step.cell))


def data(nights: Sequence[Night], repository: Path, url: str = "") -> dict[str, Any]:
    """What the script draws. A point of a cell: number of the night, median, low and high in µs, and whether the cubins
    are those of the point before (1, 0, or null if unknown). `url`: of the repository on the web, for links."""
    on, every = machines(nights), cells(nights)
    places = {cell: at for at, cell in enumerate(every)}
    return {
        "url": url.rstrip("/"),
        "tolerance": TOLERANCE,
        "nights": [
            {"day": n.day, "minute": n.minute, "commit": n.commit, "commits": _commits(nights, at, repository)}
            for at, n in enumerate(nights)
        ],
        "machines": [{"name": name, "target": target, "nights": _machine(nights, (name, target)),
                      "marks": _marks(nights, (name, target))} for name, target in on],
        "cells": [
            {"name": cell.name, "source": cell.source, "points": [_points(nights, cell, each) for each in on],
             "entries": list(_entries(nights, cell))}
            for cell in every
        ],
        "steps": [
            {"cell": places[step.cell], "machine": on.index(step.on), "night": step.night, "before": step.before,
             "kind": step.kind, "change": round(step.change, 4), "old": _short(step.old_us), "new": _short(step.new_us),
             "confirmed": step.confirmed, "causes": list(step.causes), "commands": commands(nights, step)}
            for step in all_steps(nights)
        ],
    }  # fmt: skip


def commands(nights: Sequence[Night], step: Step) -> list[str]:
    """What finds the commit of a step; nothing if the kernels are the same, or the commit."""
    first, last = nights[step.before], nights[step.night]
    if first.commit == last.commit or same_kernels(first.by[step.on], last.by[step.on], step.cell):
        return []
    entries = nights[step.night].by[step.on].times[step.cell].entries
    return bisect(step.cell, entries, step.on[1], first.commit, last.commit)


def _commits(nights: Sequence[Night], at: int, repository: Path) -> list[list[str]] | None:
    """The commits since the night before; None if they are unknown here."""
    if at == 0:
        return []
    found = subjects(repository, nights[at - 1].commit, nights[at].commit)
    return None if found is None else [list(row) for row in found]


def _machine(nights: Sequence[Night], on: Machine) -> list[dict[str, Any] | None]:
    rows = (night.by.get(on) for night in nights)
    return [one and {"driver": one.driver, "tools": dict(one.tools)} for one in rows]


def _marks(nights: Sequence[Night], on: Machine) -> list[list[Any]]:
    """The nights from which on a GPU had another driver or other tools, with what changed."""
    there = [(at, night.by[on]) for at, night in enumerate(nights) if on in night.by]
    return [[at, ", ".join(said)] for (_, old), (at, new) in pairwise(there) if (said := changes(old, new))]


def _points(nights: Sequence[Night], cell: Cell, on: Machine) -> list[list[Any]]:
    points: list[list[Any]] = []
    before: int | None = None
    for at, time in series(nights, cell, on).items():
        same = None if before is None else same_kernels(nights[before].by[on], nights[at].by[on], cell)
        points.append([at, *map(_short, (time.us, time.low, time.high)), None if same is None else int(same)])
        before = at
    return points


def _entries(nights: Sequence[Night], cell: Cell) -> Iterator[str]:
    """Those of the newest night that has the cell."""
    for night in reversed(nights):
        for one in night.by.values():
            if cell in one.times:
                yield from one.times[cell].entries
                return


def _short(value: float) -> float:
    """Five digits: more are noise, and make the page larger."""
    return float(f"{value:.5g}")


def headline(nights: Sequence[Night], found: Sequence[Step]) -> str:
    """Such as `1 slower, 2 faster in 10 nights, 2026-11-10 to 2026-11-19 · NVIDIA H200`."""
    counts = ", ".join(f"{sum(step.kind == kind for step in found)} {kind}" for kind in ("slower", "faster"))
    days = f"{nights[0].day} to {nights[-1].day}"
    gpus = ", ".join(dict.fromkeys(name for name, _ in machines(nights)))
    if len(nights) == 1:
        return f"one night, {nights[0].day}: nothing to compare it with · {gpus}"
    return f"{counts} in {len(nights)} nights, {days} · {gpus}"


def render(nights: Sequence[Night], repository: Path, url: str = "") -> str:
    """The page. Raises ImportError without jinja2."""
    found: Mapping[str, Any] = data(nights, repository, url)
    new = [step for step in found["steps"] if step["night"] >= len(nights) - 2]
    scripts = [html.PAGE / "shared.js", *(PAGE / name for name in ("chart.js", "point.js", "trends.js"))]
    return html.render(
        PAGE / "page.html.j2", [html.PAGE / "style.css", PAGE / "trends.css"], scripts, found,
        headline=headline(nights, all_steps(nights)), slower=any(step["kind"] == "slower" for step in new),
    )  # fmt: skip
