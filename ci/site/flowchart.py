"""Draws the Mermaid flowcharts of the pages as SVG while the site is built, so that the site loads no script for them.

It reads what the pages use: `flowchart LR` or `TD`, chains `a --> b -- "label" --> c`, names such as `a["label"]`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from toolchain.errors import UsageError

from .drawing import BLUE, Drawing

HEIGHT, PER_LETTER, MARGIN = 34, 7.2, 10
GAP_ALONG, GAP_ACROSS = 44, 24
_NODE = r'(\w+)(?:\["([^"]+)"\])?'
_ARROW = re.compile(r'\s*--(?:\s*"([^"]+)"\s*--)?>\s*')


@dataclass(frozen=True)
class Chart:
    """`labels` by name, in the order of the text; `arrows`: (from, to, label)."""

    down: bool
    labels: dict[str, str]
    arrows: tuple[tuple[str, str, str], ...]


def parse(text: str) -> Chart:
    """Raises UsageError for a line that is not understood."""
    head, *lines = [line.strip() for line in text.splitlines() if line.strip()]
    if head not in ("flowchart LR", "flowchart TD"):
        raise UsageError(f"a flowchart LR or TD is needed, not {head!r}")
    labels: dict[str, str] = {}
    arrows: list[tuple[str, str, str]] = []
    for line in lines:
        pieces = _ARROW.split(line)
        names: list[str] = []
        for piece in pieces[::2]:
            found = re.fullmatch(_NODE, piece)
            if found is None:
                raise UsageError(f"flowchart: {piece!r} in {line!r} is not a name")
            names.append(found[1])
            labels[found[1]] = found[2] or labels.get(found[1], found[1])
        arrows += [(a, b, label or "") for (a, b), label in zip(pairwise(names), pieces[1::2], strict=True)]
    return Chart(head.endswith("TD"), labels, tuple(arrows))


def layers(chart: Chart) -> list[list[str]]:
    """The names by their distance from the first ones, each layer in an order that keeps arrows short."""
    before: dict[str, list[str]] = {name: [a for a, b, _ in chart.arrows if b == name] for name in chart.labels}
    depth: dict[str, int] = {}
    for name in TopologicalSorter(before).static_order():
        depth[name] = max((depth[other] + 1 for other in before[name]), default=0)
    after = {name: [depth[b] for a, b, _ in chart.arrows if a == name] for name in chart.labels}
    for name in chart.labels:  # what nothing leads to stands beside what it leads to
        if not before[name] and after[name]:
            depth[name] = min(after[name]) - 1
    found = [[name for name in chart.labels if depth[name] == level] for level in range(max(depth.values()) + 1)]
    for above, layer in pairwise(found):
        place = {name: index for index, name in enumerate(above)}
        layer.sort(key=lambda name: _mean([place[other] for other in before[name] if other in place]))
    return found


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else 0


def draw(chart: Chart, title: str) -> Drawing:
    found = layers(chart)
    wide = {name: max(60.0, PER_LETTER * len(label) + 20) for name, label in chart.labels.items()}
    place: dict[str, tuple[float, float]] = {}
    if chart.down:
        rows = [sum(wide[n] for n in layer) + GAP_ACROSS * (len(layer) - 1) for layer in found]
        for level, layer in enumerate(found):
            x = MARGIN + (max(rows) - rows[level]) / 2
            for name in layer:
                place[name] = (x, MARGIN + level * (HEIGHT + GAP_ALONG))
                x += wide[name] + GAP_ACROSS
        size = (max(rows) + 2 * MARGIN, len(found) * (HEIGHT + GAP_ALONG) - GAP_ALONG + 2 * MARGIN)
    else:
        x, tallest = float(MARGIN), max(map(len, found))
        for layer in found:
            for index, name in enumerate(layer):
                place[name] = (x, MARGIN + (index + (tallest - len(layer)) / 2) * (HEIGHT + GAP_ACROSS))
            labelled = max((len(label) for a, _, label in chart.arrows if a in layer), default=0)
            x += max(wide[name] for name in layer) + GAP_ALONG + (PER_LETTER * labelled if labelled else 0)
        size = (x - GAP_ALONG + MARGIN, tallest * (HEIGHT + GAP_ACROSS) - GAP_ACROSS + 2 * MARGIN)
    picture = Drawing(*size, title)
    for a, b, label in chart.arrows:
        (x1, y1), (x2, y2) = place[a], place[b]
        if chart.down:
            picture.arrow(x1 + wide[a] / 2, y1 + HEIGHT, x2 + wide[b] / 2, y2, label)
        else:
            picture.arrow(x1 + wide[a], y1 + HEIGHT / 2, x2, y2 + HEIGHT / 2, label)
    for name, label in chart.labels.items():
        picture.box(*place[name], wide[name], HEIGHT, label, BLUE)
    return picture


class Flowchart(SphinxDirective):
    """A fence with the word `mermaid`."""

    has_content: ClassVar[bool] = True

    def run(self) -> list[nodes.Node]:
        chart = parse("\n".join(self.content))
        steps = ", ".join(f"{a} to {b}" for a, b, _ in chart.arrows)
        svg = draw(chart, f"A flowchart: {steps}").render()
        return [nodes.raw("", f'<div class="flowchart">{svg}</div>', format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("mermaid", Flowchart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
