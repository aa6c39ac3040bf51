"""The scripts know every command and option. bash's is tried out."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilestack.__main__ import parser
from tilestack.cli.completion import SHELLS, script

from ..conftest import Run

# Asks as bash does: the words, and which of them is being typed.
ASK = """\
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
function=$(complete -p tilestack | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function tilestack "${@: -1}" "${@: -2:1}"
echo "${COMPREPLY[*]}"
"""


def every_word(top: argparse.ArgumentParser) -> Iterator[str]:
    """All commands and long options."""
    for action in top._actions:
        yield from (option for option in action.option_strings if option.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield name
                yield from every_word(sub)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_knows_every_command_and_option(run: Run, shell: str) -> None:
    ran = run("completion", shell)
    assert (ran.code, ran.err) == (0, "") and ran.out.endswith("\n")
    # fish writes an option without its dashes
    lacking = [word for word in every_word(parser()) if word.lstrip("-") not in ran.out]
    assert lacking == []


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["mat"], "matrix"),
        (["matrix", "r"], "run"),
        (["cache", "cl"], "clean clear"),
        (["assemble", "--emit", ""], "mlir bytecode ptx cubin sass"),
        (["assemble", "--save-t"], "--save-temps"),
        (["generate", "--dtype", "bf"], "bf16"),
        (["verify", "kern"], "kernel.mlir kernels"),
        (["compile", "--output", "kern"], "kernels"),
        (["completion", ""], "bash zsh fish"),
    ],
)
def test_what_bash_completes(tmp_path: Path, words: list[str], wanted: str) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernel.mlir").touch()
    (tmp_path / "script").write_text(script(parser(), "bash"))
    asked = subprocess.run(
        ["bash", "-c", ASK, "bash", "./script", "tilestack", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(asked.stdout.split()) == sorted(wanted.split()) and asked.stderr == ""


def test_another_shell(run: Run) -> None:
    ran = run("completion", "cmd")
    assert ran.code == 2 and "invalid choice: 'cmd'" in ran.err
