"""`python -m benchmarks.studies.plots`: draws the studies' results, benchmarks/results/studies/*.json, beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolchain.files import write_whole
from toolchain.knobs import ROOT

from ..report.plots import COLORS, DASH, FLOOR, PEER
from ..report.svg import FONT, Panel, Picture, Scale

RESULTS = ROOT / "benchmarks/results/studies"
LINE, BARS = 19, 380  # pixels: a bar's line, the longest bar
LETTER = 6.3  # pixels of a letter, on average
MEGABYTE = 1e6
Bar = tuple[str, float, str, str]  # name, value, its text, color


def bars(title: str, subtitle: str, groups: Sequence[tuple[str, Sequence[Bar]]], *, log: bool = False) -> Picture:
    """Horizontal bars in groups, each group with a heading and one scale for all."""
    count = sum(len(rows) + 1.6 for _, rows in groups)
    left = 24 + LETTER * max(len(name) for _, rows in groups for name, *_ in rows)
    picture = Picture(left + BARS + 170, 62 + count * LINE, title)
    picture.text(12, 22, title, size=FONT + 2)
    picture.text(12, 40, subtitle, color=PEER)
    values = [value for _, rows in groups for _, value, _, _ in rows]
    low = min(values) / 2 if log else 0
    scale = Scale(low, max(values), left, left + BARS, log=log)
    y = 62.0
    for heading, rows in groups:
        picture.text(12, y + LINE - 4, heading, size=FONT + 1)
        y += LINE * 1.2
        for name, value, text, color in rows:
            picture.bar(left, y, scale(value) - left, LINE - 5, color)
            picture.text(left - 8, y + LINE - 8, name, "end")
            picture.text(scale(value) + 6, y + LINE - 8, text, size=FONT - 1)
            y += LINE
        y += LINE * 0.4
    return picture


def one_op(found: Mapping[str, Any]) -> Picture:
    """The fastest variant of each language."""
    groups: list[tuple[str, list[Bar]]] = []
    for op in ("layernorm", "attention"):
        rows = [row for row in found["rows"] if row["op"] == op]
        best = [min((r for r in rows if r["language"] == name), key=lambda r: r["us"]) for name in _names(rows)]
        made = [
            (
                f"{row['language']}, {row['lines']} lines", row["us"],
                f"{row['us']:.1f} µs, {row['share']:.0%} of the roof",
                PEER if row["language"] == "pytorch" else COLORS[0],
            )
            for row in best
        ]  # fmt: skip
        groups.append((op, made))
    return bars("One op in five languages: the fastest of a few variants", found["gpu"], groups)


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["language"] for row in rows))


def _name(found: Mapping[str, Any]) -> str:
    """The GPU without the executor's own words: `cuda:0 NVIDIA H200 sm_90`."""
    return found["gpu"].split(" ", 1)[1].rsplit(" ", 1)[0]


def ablation(found: Mapping[str, Any], case: str) -> Picture:
    """The waterfall, then what each choice is worth at the end."""
    times = {row["stage"]: row["ms"] for row in found["rows"] if row["case"] == case}
    words = {stage["name"]: stage["does"] for stage in found["stages"]}
    first = [(words[name], times[name], f"{times[name]:.3g} ms", COLORS[0]) for name in found["waterfall"]]
    final = times["final"]
    second = [
        (words[name], times[name], f"{times[name] / final:.2f} times the final time", COLORS[1])
        for name in times
        if name.startswith("no-")
    ]
    batch, length = found[case]
    what = f"{batch} x {length} tokens" if case == "forward" else f"{batch} sequences, a cache of {length} positions"
    return bars(
        f"{'The forward pass' if case == 'forward' else 'A decoding step'} of GPT-2 124M, {what}: one choice at a time",
        f"{_name(found)}, bf16, source {found['source']}, medians of {found['rounds']} rounds, logarithmic",
        [("from naive to final", first), ("the final state without one choice", second)], log=True,
    )  # fmt: skip


def depth(found: Mapping[str, Any]) -> Picture:
    """The error over the number of layers."""
    picture = Picture(760, 470, "Error over depth")
    picture.text(12, 22, "Error of the logits against float64, over the number of layers", size=FONT + 2)
    picture.text(12, 40, f"{_name(found)}, width 768, {found['tokens']} tokens, random weights", color=PEER)
    rows = found["rows"]
    layers = sorted({row["layers"] for row in rows})
    errors = [row[key] for row in rows for key in ("error", "pytorch_error") if key in row]
    x = Scale(layers[0] / 1.2, layers[-1] * 1.2, 80, 560, log=True)
    panel = Panel(picture, x, Scale(min(errors) / 2, max(errors) * 2, 410, 70, log=True))
    panel.frame("", "layers", "relative error (Frobenius)", "{:.0e}".format)
    legend: list[tuple[str, str, str]] = []
    for dtype, color in zip(("bf16", "f16", "tf32", "f32"), (*COLORS, FLOOR), strict=True):
        own = [row for row in rows if row["dtype"] == dtype]
        panel.curve([(row["layers"], row["error"]) for row in own], color, dtype)
        legend.append((f"{dtype}, ours", color, ""))
        if "pytorch_error" in own[0]:
            panel.curve([(row["layers"], row["pytorch_error"]) for row in own], color, f"PyTorch {dtype}", DASH)
            legend.append((f"{dtype}, PyTorch", color, DASH))
    picture.legend(590, 100, legend)
    return picture


def deploy(found: Mapping[str, Any]) -> Picture:
    """Disk, memory and time of both sides."""
    colors = {"tilestack": COLORS[0], "pytorch": PEER}
    disk = {name: sum(sizes.values()) / MEGABYTE for name, sizes in found["disk"].items()}
    medians = found["medians"]

    def group(title: str, value: Callable[[str], float], text: str) -> tuple[str, list[Bar]]:
        most = max(value(name) for name in colors)
        return title, [(n, value(n) / most, text.format(value(n)), color) for n, color in colors.items()]

    return bars(
        "What it takes to run GPT-2 124M: each pair of bars is scaled by its larger one",
        f"one {found['gpu']}, Python {found['python']}, medians of {found['runs']} starts, files in the page cache",
        [
            group("on disk, with Python packages and without weights", lambda n: disk[n], "{:.0f} MB"),
            group("imported", lambda n: medians[n]["imported"], "{:.2f} s"),
            group("from a cold start to the first token", lambda n: medians[n]["first token"], "{:.2f} s"),
            group("host memory, at most", lambda n: medians[n]["host_bytes"] / MEGABYTE, "{:.0f} MB"),
            group("GPU memory, with the driver's context", lambda n: medians[n]["gpu_bytes"] / MEGABYTE, "{:.0f} MB"),
        ],
    )


def main() -> None:
    read = {path.stem: json.loads(path.read_text()) for path in RESULTS.glob("*.json")}
    pictures = {
        "one-op": one_op(read["one-op"]), "ablation-forward": ablation(read["ablation"], "forward"),
        "ablation-decode": ablation(read["ablation"], "decode"), "depth": depth(read["depth"]),
        "deploy": deploy(read["deploy"]),
    }  # fmt: skip
    for name, picture in pictures.items():
        path: Path = RESULTS / f"{name}.svg"
        write_whole(path, picture.render())
        print(path)


if __name__ == "__main__":
    main()
