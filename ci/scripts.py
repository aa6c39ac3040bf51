"""The shell scripts that CI runs, also those inside workflows, and shellcheck over all: part of `nox -s lint`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from toolchain.knobs import ROOT

SHELL = "bash"  # what GitHub runs `run:` with, as bash -e
FILES = (".ci/run", ".ci/engine", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "ci/runner").glob("*.sh")))


@dataclass(frozen=True)
class Script:
    """A `run:` block of a workflow."""

    workflow: str
    job: str
    step: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.workflow}: {self.job}: {self.step}"


def scripts(folder: Path = ROOT / ".github/workflows") -> Iterator[Script]:
    """All `run:` blocks of the workflows in a folder, in their order."""
    for path in sorted(folder.glob("*.y*ml")):
        jobs: dict[str, Any] = yaml.safe_load(path.read_text())["jobs"]
        for job, table in jobs.items():
            for step in table.get("steps", ()):
                if "run" in step:
                    yield Script(path.name, job, step["name"], step["run"])


def main() -> int:
    """Run shellcheck; returns 1 if it finds anything."""
    shellcheck = str(Path(sys.executable).parent / "shellcheck")
    found = list(scripts())
    with tempfile.TemporaryDirectory() as folder:
        copies: list[str] = []
        for number, script in enumerate(found):
            copy = Path(folder) / f"{number:02d} {script.name.replace('/', ' ')}"
            copy.write_text(script.text)
            copies.append(str(copy))
        blocks = subprocess.run([shellcheck, f"--shell={SHELL}", *copies], check=False)
    files = subprocess.run([shellcheck, "--shell=sh", "--external-sources", *FILES], cwd=ROOT, check=False)
    print(f"shellcheck: {len(found)} scripts of workflows, {len(FILES)} files")
    return int(bool(blocks.returncode or files.returncode))


if __name__ == "__main__":
    sys.exit(main())
