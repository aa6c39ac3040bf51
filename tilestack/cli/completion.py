"""`completion`: scripts with which a shell completes our commands, options and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .common.options import command, emit

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = """\
  tilestack completion bash -o ~/.local/share/bash-completion/completions/tilestack
  tilestack completion zsh -o ~/.zsh/completions/_tilestack        a folder of $fpath, before compinit
  tilestack completion fish -o ~/.config/fish/completions/tilestack.fish
"""


def add(commands: Any) -> None:
    made = command(commands, "completion", completion, "print a script that completes commands in a shell", EXAMPLES)
    made.add_argument("shell", choices=SHELLS, help="which shell")
    made.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: standard output")


def completion(args: argparse.Namespace) -> int:
    emit(args.output, script(args.parser, args.shell).encode())
    return 0


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for a shell, from the parser of the whole command line."""
    import shtab

    for action in _actions(parser):
        if action.type is Path and not action.choices:
            action.complete = shtab.DIR if action.metavar == "DIR" else shtab.FILE  # type: ignore[attr-defined]
    made: str = shtab.complete(parser, shell)
    return f"{made.rstrip()}\n"


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Those of a parser and of all its commands."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            for sub in dict.fromkeys(action.choices.values()):
                yield from _actions(sub)
        else:
            yield action
