"""The request of ci/bench.toml, and what is made of it; that main's file is empty is checked by CI on main alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.report.result import BenchmarkRow, Results
from ci.bench import __main__ as bench
from ci.bench import request as requests
from ci.bench.__main__ import cases, main, markdown, measure
from ci.bench.request import Request, load
from ci.matrix import Matrix
from ci.plan import show
from ci.plan.jobs import plan
from toolchain.errors import UsageError
from toolchain.knobs import ROOT

GELU = "gelu M=8192 N=3072 bf16"
GOOD = 'cases = ["^gelu M=8192 ", "^layernorm N=8192 "]\ngpus = ["h100", "h200"]\nsamples = 60\n'


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return Matrix.load()


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(requests, "TABLE", tmp_path / "bench.toml")
    return requests.TABLE


def test_only_comments_ask_for_nothing_and_the_example_in_them_is_right(table: Path, matrix: Matrix) -> None:
    lines = (ROOT / "ci/bench.toml").read_text().splitlines()
    table.write_text("\n".join(line for line in lines if line.startswith("#")))
    assert load(matrix, table) is None
    assert main(["check", "--empty"]) == 0
    table.write_text("\n".join(line[2:] for line in lines if line.startswith("# ") and " = " in line))
    found = load(matrix, table)
    assert found and found.samples == 60 and len(cases(found)) == 5


def test_a_request_names_cases_gpus_and_samples(table: Path, matrix: Matrix) -> None:
    table.write_text(GOOD)
    found = load(matrix, table)
    assert found and [case.name for case in cases(found)] == [GELU, "layernorm N=8192 C=768 bf16"]
    assert (found.gpus, found.samples) == (["h100", "h200"], 60)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"^gelu M=8192 "', '"^gulu M=8192"', "bench.toml:1: cases: no case matches '^gulu M=8192'"),
        ('"^gelu M=8192 "', '"gelu ("', "bench.toml:1: cases: 'gelu (' is no regular expression"),
        ('"h100"', '"hosted"', "bench.toml:2: gpus: no runner with a GPU is called 'hosted'"),
        ('"h100"', '"b300"', "bench.toml:2: gpus: no runner with a GPU is called 'b300'"),
        ("60", "4", "bench.toml: samples is 4, not an integer from 5 to 500"),
        ("60", "501", "bench.toml: samples is 501"), ("60", "true", "bench.toml: samples is True"),
        ("60", "30.0", "bench.toml: samples is 30.0"), ("samples = 60\n", "", "bench.toml: it has no samples"),
        ("samples", "sample", "bench.toml: unknown sample"), ('["h100", "h200"]', "[]", "bench.toml: gpus is []"),
        ("gpus =", "gpus", "bench.toml:2:6: not valid TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_file_and_key(table: Path, capsys: Any, old: str, new: str, why: str) -> None:
    table.write_text(GOOD.replace(old, new, 1))
    assert main(["check"]) == 2
    assert why in capsys.readouterr().err


def test_main_must_ask_for_nothing(table: Path, capsys: Any) -> None:
    table.write_text(GOOD)
    assert main(["check"]) == 0
    assert main(["check", "--empty"]) == 2
    assert "asks for 2 benchmarks: on main it must be empty" in capsys.readouterr().err


def test_the_plan_has_a_job_for_each_gpu_with_its_bundle(table: Path, matrix: Matrix) -> None:
    table.write_text(GOOD)
    request = load(matrix, table)
    event = matrix.events["pull_request"]
    made = plan(matrix, event, [], "main", request=request)
    assert [(job.name, job.more["gpu"], job.required) for job in made.bench] == [
        ("bench h100", "NVIDIA H100 80GB HBM3", False), ("bench h200", "NVIDIA H200", False)
    ]  # fmt: skip
    assert [job.more["artifact"] for job in made.compile] == ["bundle-sm_90"] and not made.gpu
    assert any(line.startswith("bench={") for line in show.github_outputs(made))
    more = plan(matrix, event, [], "main", request=replace(request, samples=600)) if request else made
    assert more.bench[0].minutes > made.bench[0].minutes > matrix.seconds.gpu_start / 60
    assert not plan(matrix, matrix.events["nightly"], None, request=request).bench


def _results(status: Any = "ok") -> Results:
    row = BenchmarkRow(
        "ops", GELU, "mlir", "bf16", "", {}, status, "a|b" if status != "ok" else "", peer="base mlir",
        peer_kind="against", ours_ms=0.1, peer_ms=0.08, ratio=0.8 if status == "ok" else None, ratio_low=0.78,
        ratio_high=0.82,
    )  # fmt: skip
    against = {"base": {"bundle": "o", "commit": "1" * 40}}
    about = {"gpu": "NVIDIA H200", "driver": "580", "bundle_commit": "2" * 40, "against": against}
    return Results(about, {}, [row])


def test_a_comment_has_both_times_and_the_change(table: Path, matrix: Matrix, tmp_path: Path) -> None:
    table.write_text(GOOD)
    request = load(matrix, table)
    assert request
    commands: list[Sequence[str]] = []

    def start(argv: Sequence[str]) -> int:
        commands.append(argv)
        made = _results()
        made.save(Path(argv[argv.index("--output") + 1]) / made.file_name)
        return 0

    results = measure(request, Path("new"), Path("old"), tmp_path, start)
    (argv,) = map(list, commands)
    assert argv[argv.index("--samples") + 1] == "60" and argv[argv.index("--against") + 1] == "base=old"
    assert GELU in argv[argv.index("--case") + 1].replace("\\", "")
    text = "\n".join(markdown(results, request))
    assert f"| {GELU} | mlir | 80 | 100 | +25.0 % [+22.0, +28.2] |" in text
    assert "`111111111111` to `222222222222`" in text
    assert "| layernorm N=8192 C=768 bf16 | | | | not compared |" in text
    assert bench.EMPTIED in text
    assert "| error: a\\|b |" in "\n".join(markdown(_results("error"), request))


def test_a_run_needs_a_request(table: Path, capsys: Any) -> None:
    table.write_text("")
    assert main(["run", "--bundle", "a", "--base", "b"]) == 2
    assert "asks for no benchmarks" in capsys.readouterr().err


def test_the_options_are_those_of_the_benchmarks(matrix: Matrix, tmp_path: Path) -> None:
    from benchmarks.__main__ import options, parser

    def start(argv: Sequence[str]) -> int:
        taken = options(parser().parse_args(argv[3:]))
        assert taken.case.search(GELU) and taken.samples == 7
        made = _results()
        made.save(taken.output / made.file_name)
        return 0

    assert measure(Request(tmp_path, [f"^{GELU}"], ["h200"], 7), Path("a"), Path("b"), tmp_path, start).rows
    with pytest.raises(UsageError, match="cannot be read"):
        load(matrix, tmp_path / "bench.toml")
