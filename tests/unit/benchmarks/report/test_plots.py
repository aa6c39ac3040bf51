from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.cases.cases import ForwardCase
from benchmarks.report.plots import ratios, roofline, scaling, write_plots
from benchmarks.report.result import Results
from benchmarks.report.svg import Panel, Picture, Scale, around
from toolchain.errors import UsageError

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: Picture) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(picture.render()).iter(f"{SVG}text")]


def test_every_picture_is_drawn_and_the_same_each_time(results: Results, tmp_path: Path) -> None:
    paths = write_plots(results, tmp_path / "plots")
    assert [path.name for path in paths] == ["ratios.svg", "roofline.svg", "scaling.svg"]
    for path in paths:
        assert ElementTree.parse(path).getroot().tag == f"{SVG}svg"
        assert "nan" not in path.read_text()
    before = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in write_plots(results, tmp_path / "plots")] == before


def test_a_picture_that_cannot_be_written_leaves_the_old_one(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ratios.svg").write_text("old")

    def full(_self: Path, _target: Path) -> Path:
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_plots(results, tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("ratios.svg", "old")]


def test_ratios_have_a_bar_and_a_number_per_case_and_source(results: Results) -> None:
    picture = ratios(results)
    assert picture
    said = texts(picture)
    assert said.count("1.50") == 6  # of two sources, three cases that are no scaling
    assert {"forward 64", "forward 1024", "ops 8"} <= set(said)
    assert not any("scaling" in text for text in said)


def test_a_model_with_its_norms_folded_has_a_bar_and_a_point_of_its_own(results: Results, row: Any) -> None:
    cases = [ForwardCase("xl", 8, 1024, group="larger", folded=folded) for folded in (None, True)]
    rows = [row(group="larger", case=case.name, shape=case.shape, dims=case.dims, source="py") for case in cases]
    both = replace(results, rows=rows)
    bars, points = ratios(both), roofline(both)
    assert bars and points
    assert {case.name for case in cases} <= set(texts(bars))
    assert all(f"{case.name}, py: " in "".join(points.parts) for case in cases)
    assert scaling(both) is None


def test_a_wrong_row_is_not_drawn(results: Results, row: Any) -> None:
    wrong = row(status="wrong", ratio=None, ours_ms=None)
    with pytest.raises(UsageError, match="nothing to draw"):
        write_plots(replace(results, rows=[wrong]), Path("unused"))


def test_a_point_of_the_roofline_is_what_was_reached(results: Results, row: Any) -> None:
    one = replace(results, rows=[row(flops=4 * 10**9, nbytes=10**7, ours_ms=0.1, peer_ms=0.2)])
    picture = roofline(one)
    assert picture
    said = "".join(picture.parts)
    assert "linear M=8, mlir: 40 TFLOP/s" in said
    assert "F.linear: 20 TFLOP/s" in said
    assert "4.00 TB/s and 800 TFLOP/s" in said


def test_scaling_shows_time_and_memory(results: Results) -> None:
    picture = scaling(results)
    assert picture
    assert {"ms", "MB at most", "tokens T, B = 1"} <= set(texts(picture))
    assert scaling(replace(results, rows=[r for r in results.rows if r.group != "scaling"])) is None


def test_scaling_without_memory_has_times_alone(results: Results) -> None:
    rows = [replace(r, ours_peak_bytes=None, peer_peak_bytes=None, model_bytes=None) for r in results.rows]
    picture = scaling(replace(results, rows=rows))
    assert picture
    assert "MB at most" not in texts(picture)


@pytest.mark.parametrize(
    ("low", "high", "log", "wanted"),
    [
        (0, 2, False, [0, 0.5, 1, 1.5, 2]), (0, 1.2, False, [0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2]),
        (1, 1000, True, [1, 10, 100, 1000]), (3, 70, True, [5, 10, 20, 50]), (0.04, 30, True, [0.1, 1, 10]),
    ],
)  # fmt: skip
def test_ticks_are_round(low: float, high: float, log: bool, wanted: list[float]) -> None:
    assert Scale(low, high, 0, 100, log=log).ticks() == pytest.approx(wanted)


def test_a_scale_maps_its_ends() -> None:
    scale = Scale(1, 100, 50, 150, log=True)
    assert [scale(1), scale(10), scale(100)] == pytest.approx([50, 100, 150])
    for low, high, log in ((1, 1, False), (0, 1, True)):
        with pytest.raises(ValueError):
            Scale(low, high, 0, 1, log=log)


def test_around_leaves_room() -> None:
    low, high = around([3, 5])
    assert 0 < low < 3 < 5 < high


def test_text_is_escaped() -> None:
    picture = Picture(100, 100, 'a "b" <c>')
    picture.text(0, 0, "x < y & z")
    Panel(picture, Scale(0, 1, 10, 90), Scale(0, 1, 90, 10)).frame("<t>", "x", "y")
    assert "x < y & z" in texts(picture)
