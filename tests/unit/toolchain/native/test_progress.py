from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.knobs import ROOT
from toolchain.native.progress import Progress

OUTPUT = [
    "-- configuring",
    "== llvm 22.1.8: building",
    *(f"[{step}/250] Building CXX object {step}.o" for step in range(1, 251)),
    "[100/3] of no ninja",
    "a warning: [200/250] is not where a line starts",
    "== cuda_tile 13.1.3: testing",
    "[bold]no markup[/]",
]


def test_without_a_terminal_stages_and_every_hundredth_step_are_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with Progress(tmp_path / "new/folder/build.log") as progress:
        for line in OUTPUT[:-3]:
            progress.line(line)
        for line in OUTPUT[-2:]:
            progress.line(line)
    assert capsys.readouterr().out.splitlines() == [
        "llvm 22.1.8: building",
        "  100 of 250 steps",
        "  200 of 250 steps",
        "  100 of 3 steps",
        "cuda_tile 13.1.3: testing",
    ]


def test_the_log_has_every_line(tmp_path: Path):
    with Progress(tmp_path / "build.log") as progress:
        for line in OUTPUT:
            progress.line(line)
    assert (tmp_path / "build.log").read_text().splitlines() == OUTPUT


def test_the_log_of_a_failure_has_what_came_before_it(tmp_path: Path):
    (tmp_path / "build.log").write_text("of an older build\n")

    def build() -> None:
        with Progress(tmp_path / "build.log") as progress:
            progress.line("[1/2] one")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build()
    assert (tmp_path / "build.log").read_text() == "[1/2] one\n"


def test_a_build_that_waits_for_another_leaves_its_log_alone(tmp_path: Path):
    (tmp_path / "build.log").write_text("of the other build\n")
    with Progress(tmp_path / "build.log") as progress:
        assert not progress.began
        assert (tmp_path / "build.log").read_text() == "of the other build\n"
        progress.line("== llvm")
        assert progress.began
    assert (tmp_path / "build.log").read_text() == "== llvm\n"


def test_on_a_terminal_a_bar_follows_the_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with Progress(tmp_path / "build.log") as progress:
        assert state(progress) == ("starting", 0, None)
        progress.line("== llvm")
        progress.line("[7/250] x")
        assert state(progress) == ("llvm", 7, 250)
        progress.line("== cuda_tile")
        assert state(progress) == ("cuda_tile", 0, None)


def state(progress: Progress) -> tuple[str, float, float | None]:
    """What the one bar shows."""
    (task,) = progress._bar.tasks
    return task.description, task.completed, task.total


def test_the_log_takes_what_the_locale_lacks(tmp_path: Path):
    code = (
        "import pathlib, sys; from toolchain.native.progress import Progress\n"
        "with Progress(pathlib.Path(sys.argv[1])) as progress: progress.line('caf\\u00e9')"
    )
    environment = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-X", "utf8=0", "-c", code, str(tmp_path / "log")]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    assert (tmp_path / "log").read_text(encoding="utf-8") == "caf\N{LATIN SMALL LETTER E WITH ACUTE}\n"
