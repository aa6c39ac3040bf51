"""Behaviour that all commands share: help, errors, exit codes, signals, a reader that goes away."""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilestack import __main__ as command
from tilestack.__main__ import main, parser
from tilestack.cli.common.options import SOURCES
from toolchain import errors
from toolchain.contract.sources import load_source
from toolchain.knobs import ROOT


def every_command(top: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    """The help of each command by its words."""
    found = {words: top.format_help()} if words else {}
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                found |= every_command(sub, (*words, name))
    return found


def test_every_command_is_documented() -> None:
    helps = every_command(parser())
    assert {words[0] for words in helps} == {
        "compile", "tune", "assemble", "disassemble", "verify", "fmt", "interpret",
        "inspect", "pack", "unpack", "verify-bundle", "generate", "quantize", "matrix", "report", "doctor",
        "reproduce", "diff", "bisect", "run", "sbom", "provenance", "licences", "stack", "cache",
        "cute-opt",
        "cute-run",
        "draw-layout",
        "export-cpp", "completion", "init", "check", "record", "time", "gate",
    }  # fmt: skip
    for words, text in helps.items():
        if words not in {("doctor",), ("matrix", "list"), ("stack", "list")}:
            assert f"examples:\n  tilestack {words[0]}" in text, f"{words}: no example"
        lines = text.splitlines()
        for line, following in itertools.pairwise(lines):
            bare = re.fullmatch(r"  (-\S.*|[a-z_]+)", line) and "  " not in line[2:]
            # The help of a long option stands on the next line.
            assert not bare or following.startswith("     "), f"{words}: {line!r} has no help"


def test_examples_parse() -> None:
    top = parser()
    texts = [top.format_help(), *every_command(top).values()]
    lines = {line.strip() for text in texts for line in text.splitlines() if line.startswith("  tilestack ")}
    assert len(lines) > 15
    for line in lines:
        words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', re.split(r" {3,}", line)[0])]
        args = top.parse_args(words[1:])
        assert callable(args.run), line


def test_commands_in_the_docs_parse() -> None:
    entries = {spec.symbol for spec in load_source(SOURCES["mlir"]).entries()}
    lines = [
        line
        for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
        for line in re.findall(r"^(?:\| `)?tilestack ([^`|&#>\n]+)", path.read_text(), re.MULTILINE)
    ]
    assert len(lines) > 20
    top = parser()
    for line in lines:
        args = top.parse_args(shlex.split(line))
        of_its_time = getattr(args, "commits", False)  # an entry of earlier commits
        assert of_its_time or getattr(args, "entry", None) in {None, *entries}, line


def test_kinds_of_failure_differ_in_their_exit_code() -> None:
    kinds = (
        "UsageError",
        "SourceError",
        "ToolchainError",
        "BundleError",
        "LaunchError",
        "DeviceError",
        "SanitizerError",
    )
    codes = [getattr(errors, kind).exit_code for kind in (*kinds, "ConformanceError", "PolicyError", "TilestackError")]
    assert len(set(codes)) == len(codes) and 0 not in codes
    for code in codes:
        assert re.search(rf"\b{code} \w", command.EPILOG), f"exit code {code} is not in the help"


class Raises:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, _: argparse.Namespace) -> int:
        raise self.error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (errors.SourceError("k.mlir:3:4: no", hint="write yes"), 3, "error: k.mlir:3:4: no\n  next: write yes\n"),
        (errors.NoGPU("none"), 7, "error: none\n"),
        (OSError(28, "No space left on device", "/x"), 1, "error: [Errno 28] No space left on device: '/x'\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_an_error_is_a_message_and_an_exit_code(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilestack.cli.doctor.doctor", Raises(error))
    assert main(["doctor"]) == code
    assert capsys.readouterr() == ("", said)
    if isinstance(error, Exception):
        for words in (["--debug", "doctor"], ["doctor", "--debug"]):
            with pytest.raises(type(error)):
                main(words)


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilestack.cli.doctor.doctor", Raises(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        main(["doctor"])


@pytest.mark.parametrize("words", [[], ["nope"], ["matrix"], ["compile", "--source", "c"], ["compile", "--jobs", "x"]])
def test_words_that_do_not_parse(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "usage: tilestack" in capsys.readouterr().err


def started(*words: str, cwd: Path = ROOT, stdout: int = subprocess.PIPE, **environment: str) -> subprocess.Popen[str]:
    # What a shell puts in the background ignores interrupts, and so would what these tests start there.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "tilestack", *words],
            stdout=stdout, stderr=subprocess.PIPE, text=True, start_new_session=True,
            cwd=cwd, env={**os.environ, "PYTHONUNBUFFERED": "", **environment},
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_reader_that_goes_away_is_no_error_but_ends_what_still_prints() -> None:
    for words, code in ((["--help"], 0), (["matrix", "list"], 141), (["verify", "kernels_mlir/gelu.mlir"], 0)):
        read, write = os.pipe()
        os.close(read)  # before it starts: it must not have written everything by then
        with started(*words, stdout=write) as process:
            os.close(write)
            _, said = process.communicate()
        assert (process.returncode, said) == (code, ""), words


@pytest.mark.parametrize("words", ["--help", "matrix list", "disassemble {}", "disassemble {} >&1 2>&-"])
def test_closed_streams_are_no_error(words: str, add_one: Path, tmp_path: Path) -> None:
    assert main(["assemble", str(add_one), "-o", str(tmp_path / "k")]) == 0
    command = f"exec {sys.executable} -m tilestack {words.format(tmp_path / 'k')} >&-"
    done = subprocess.run(["/bin/sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_file_name_that_is_no_text_is_shown_escaped(add_one: Path, encoding: str) -> None:
    odd = add_one.rename(add_one.with_name("\udcff.mlir"))
    process = started("verify", str(odd), PYTHONIOENCODING=f"{encoding}:strict")
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "") and r"\udcff.mlir: ok: @add_one" in out


def test_an_interrupt_ends_a_compile_quietly(tmp_path: Path) -> None:
    process = started(
        "compile", "--source", "mlir", "--no-targets", "--jobs", "1", "--output", str(tmp_path / "b"),
        TILESTACK_CACHE_DIR=str(tmp_path / "cache"),
    )  # fmt: skip
    while not (tmp_path / "cache").exists():  # it is compiling
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the compiling processes get it too
    out, err = process.communicate()
    *progress, last = err.splitlines()  # after ten seconds it says how far it is
    assert (process.returncode, out, last) == (130, "", "interrupted")
    assert all(line.startswith("compiled ") for line in progress)
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_help_needs_no_package_at_all_and_a_command_says_what_it_lacks() -> None:
    def bare(*words: str) -> subprocess.CompletedProcess[str]:
        """Without site-packages, as where nothing has been installed yet."""
        command = [sys.executable, "-S", "-m", "tilestack", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    helped = bare("--help")
    assert (helped.returncode, helped.stderr) == (0, "") and "interpret" in helped.stdout
    for words in (["interpret", "kernels_mlir/gelu.mlir"], ["matrix", "run"], ["generate"]):
        ran = bare(*words)
        assert ran.returncode == 4 and re.match(r"error: this command needs \w+, which .* lacks\n  next: ", ran.stderr)


def test_help_needs_no_heavy_package() -> None:
    code = (
        "import sys; from tilestack.__main__ import parser; parser().format_help(); print([m for m in "
        "('numpy', 'xdsl', 'cuda.tile', 'rich', 'jinja2', 'torch', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
