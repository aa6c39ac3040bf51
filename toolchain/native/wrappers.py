"""The programs in a prefix's `bin`: each runs a tool of the prefix where it was built, see run_tool.py."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from ..knobs import ROOT

SCRIPT = """\
#!/bin/sh
# Written by `nox -s build_toolchain -- --native`: runs {name} of this folder's toolchain where it was built.
prefix=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
exec {python} -P -c {code} "$prefix" {name} "$@"
"""
CODE = "import sys; sys.path.insert(0, {root!r}); from toolchain.native.run_tool import main; sys.exit(main())"


def write_wrappers(prefix: Path) -> None:
    """Write a program for each tool that the prefix's tools.json has."""
    folder = prefix / "bin"
    folder.mkdir()
    code, python = shlex.quote(CODE.format(root=str(ROOT))), shlex.quote(sys.executable)
    for name in json.loads((prefix / "tools.json").read_text()).get("tools", {}):
        script = folder / name
        script.write_text(SCRIPT.format(name=shlex.quote(name), python=python, code=code))
        script.chmod(0o755)
