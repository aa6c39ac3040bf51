"""A stand-in for `python3`, for jobs that each begin with `python3 -m venv .venv && .venv/bin/pip install -r …`.

It copies an environment that has these packages already, by hard links, as if it had just been made. pip still looks
whether all is there. tests/native/ci/test_workflows.py runs the same lines with nothing prepared.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SCRIPT = """\
#!/bin/sh
if [ "$*" = "-m venv .venv" ]; then
    cp -al {made} .venv
    exec sed -i "1s|{made}|$PWD/.venv|" $(grep -lI "^#!{made}" .venv/bin/*)
fi
exec {python} "$@"
"""


def python3(folder: Path, requirements: Path) -> str:
    """Makes the environment in a new folder. Returns the script."""
    python = shutil.which("python3")
    assert python
    subprocess.run([python, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin/pip", "install", "-qr", requirements], check=True)
    return SCRIPT.format(made=folder, python=python)
