from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from toolchain.native.conan import Conan


class Stub(NamedTuple):
    """A Conan whose program is a script: it records each call in `log` and runs the code set with `does`."""

    conan: Conan
    log: Path

    def does(self, code: str) -> None:
        """Sets the script's Python; `arguments` there are the command's."""
        start = f"#!{sys.executable}\nimport json, os, pathlib, sys\narguments = sys.argv[1:]\n"
        start += f"with open({str(self.log)!r}, 'a') as file: print(json.dumps(arguments), file=file)\n"
        self.conan.program.parent.mkdir(parents=True, exist_ok=True)
        self.conan.program.write_text(start + code)
        self.conan.program.chmod(0o755)

    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    folder = tmp_path / "work"
    made = Stub(Conan(folder / "conan-9.9-abcd/bin/conan", folder / "home", folder / "ccache"), tmp_path / "calls")
    made.does("")
    return made
