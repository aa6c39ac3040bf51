from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import cpu
from benchmarks.cases.cases import CASES
from benchmarks.report.result import Results
from toolchain.errors import UsageError


def test_every_case_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(CASES)


def test_results_are_merged_shown_and_drawn(
    results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b, both = (tmp_path / f"{name}.json" for name in ("a", "b", "both"))
    results.save(a)
    results.save(b)
    assert command.main(["merge", str(a), str(b), "-o", str(both)]) == 0
    assert command.main(["table", str(both)]) == 0
    assert "forward 64" in capsys.readouterr().out
    assert command.main(["plot", str(both), "--output", str(tmp_path)]) == 0
    assert (tmp_path / "ratios.svg").is_file()


@pytest.mark.parametrize(
    "words",
    [["gpu", "--only", "nothing"], ["gpu", "--case", "("], ["gpu", "--peers", "jax"], ["gpu", "--samples", "0"],
     ["cpu", "--only", "x"], ["cpu", "--only", ","], ["gpu", "--only", ","], ["unknown"],
     ["gpu", "--against", ""], ["gpu", "--against", "/"], ["gpu", "--against", "some/a=b"]],
)  # fmt: skip
def test_bad_words_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(words)
    assert caught.value.code == 2
    assert words[-1] in capsys.readouterr().err


def test_bundles_to_compare_with_have_names() -> None:
    args = ["--against", "build/old", "--against", "b=c=some/where", "--against", "x=.", "--at-least", "0.98"]
    found = command.options(command.parser().parse_args(["gpu", *args]))
    assert found.against == {"old": Path("build/old"), "b": Path("c=some/where"), "x": Path()}
    assert found.at_least == 0.98


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--against", "a", "--against", "other/a"], "two bundles called a"),
        (["--at-least", "0.98"], "say which: --against"),
    ],
)
def test_a_comparison_that_says_nothing_is_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused before anything is loaded, because this machine may have no PyTorch."""
    assert command.main(["gpu", *words]) == UsageError.exit_code
    assert message in capsys.readouterr().err


def test_a_run_may_have_no_peers() -> None:
    assert command.parser().parse_args(["gpu", "--peers", ""]).peers == []


def test_an_error_is_a_message_and_an_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["table", str(tmp_path / "none.json")]) == 2
    assert "error:" in capsys.readouterr().err


def test_what_cannot_be_written_is_a_message(
    results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, file = tmp_path / "a.json", tmp_path / "README.md"
    results.save(given)
    file.write_text("no folder")
    for words in (["plot", str(given), "--output", str(file)], ["merge", str(given), "-o", str(file / "x.json")]):
        assert command.main(words) == 1
        assert re.fullmatch(r"error: \[Errno \d+\] .*README\.md.*\n", capsys.readouterr().err)


def test_a_package_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lacks(_: cpu.Options) -> int:
        raise ModuleNotFoundError(name="xdsl.dialects")

    monkeypatch.setattr(cpu, "run", lacks)
    assert command.main(["cpu"]) == 4
    said = capsys.readouterr().err
    assert "needs xdsl.dialects" in said
    assert f"next: {command.SET_UP}" in said


def test_without_pytorch_the_gpu_part_says_so() -> None:
    """This runs in a separate Python process, where the import of PyTorch always fails."""
    program = "import sys; sys.modules['torch'] = None; from benchmarks.__main__ import main; sys.exit(main(['gpu']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "PyTorch" in done.stderr


def test_without_a_gpu_the_cpu_part_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[cpu.Options] = []
    monkeypatch.setattr("toolchain.runtime.gpus", tuple)
    monkeypatch.setattr(cpu, "run", lambda options: asked.append(options) or 0)
    assert command.main([]) == 0
    assert asked == [cpu.Options(command.OUTPUT, list(cpu.PARTS), [], 3)]


@pytest.mark.parametrize("code", [0, 3])
def test_on_a_gpu_what_it_needs_is_compiled_first(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    ran: list[Any] = []

    def run(words: list[str], check: bool) -> Any:
        assert not check
        ran.append(words[1:6])
        return SimpleNamespace(returncode=code)

    monkeypatch.setattr("toolchain.runtime.gpus", lambda: [SimpleNamespace(target="sm_90")])
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(command, "_gpu", lambda args: ran.append(args.bundle) or 0)
    assert command.main([]) == code
    assert ran == [["-m", "tilestack", "compile", "--target", "sm_90"], *([command.BUNDLE] if code == 0 else [])]
