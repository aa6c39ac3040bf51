"""A machine for the health check: an `nvidia-smi` and a `journalctl` that are not the real ones, on PATH."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

RECORDED = Path(__file__).with_name("h200.csv")  # what an H200 answered: idle, then multiplying matrices
# Answers --query-gpu from a table of fields, as the real one does with --format=csv,noheader,nounits.
NVIDIA_SMI = """\
#!{python} -IS
import json, sys, time
# This is not NVIDIA's program: it repeats what a test wrote.
with open({answers!r}) as file:
    answers = json.load(file)
time.sleep(answers["sleeps"])
what, fields = sys.argv[1].removeprefix("--query-").split("=")
only = sys.argv[4] if sys.argv[3:4] == ["-i"] else ""
if what == "compute-apps":  # a row begins with the GPU's UUID, where a test has several
    rows = [row.partition("@")[::2] if "@" in row else ("", row) for row in answers["processes"]]
    sys.exit(print("\\n".join(row for uuid, row in rows if not only or uuid in ("", only))))
if answers["code"]:
    sys.exit(print(answers["said"]) or answers["code"])
gpus = [gpu for gpu in answers["gpus"] if not only or gpu["uuid"] == only]
if only and not gpus:
    sys.exit(print("No devices were found") or 6)
for gpu in gpus:
    print(", ".join(gpu[field] for field in fields.split(",")))
"""


@dataclass
class Machine:
    """What the fakes say. `change` what is wrong before the check."""

    folder: Path
    answers: dict[str, object]
    gpu: dict[str, str]

    def write(self) -> None:
        (self.folder / "answers.json").write_text(json.dumps(self.answers))

    def set(self, **values: str) -> None:
        """Other values of the GPU, by field; `__` stands for a full stop."""
        self.gpu.update({name.replace("__", "."): value for name, value in values.items()})
        self.write()

    def says(self, **answers: object) -> None:
        self.answers.update(answers)
        self.write()

    def gpus(self, count: int) -> list[dict[str, str]]:
        """So many GPUs like the recorded one; the values of each may be changed, then `write`."""
        made = [
            self.gpu | {"index": str(n), "uuid": f"GPU-{n}", "pci.bus_id": f"00000000:{n + 1:X}B:00.0"}
            for n in range(count)
        ]  # fmt: skip
        self.says(gpus=made)
        return made

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def kernel_log(self, *lines: str) -> None:
        (self.folder / "kernel.log").write_text("\n".join(["Linux version 6.12", *lines]) + "\n")


def recorded() -> list[dict[str, str]]:
    """The recorded GPUs as the check gets them, without units."""
    header, *rows = csv.reader(RECORDED.read_text().splitlines(), skipinitialspace=True)
    names = [name.partition(" [")[0] for name in header]
    return [
        {name: value.removesuffix(" MiB").removesuffix(" MHz") for name, value in zip(names, row, strict=True)}
        for row in rows
    ]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    (tmp_path / "bin").mkdir()
    gpu, _ = recorded()
    answers: dict[str, object] = {"gpus": [gpu], "processes": [], "code": 0, "said": "", "sleeps": 0}
    made = Machine(tmp_path, answers, gpu)
    made.write()
    answers_file = str(tmp_path / "answers.json")
    made.program("nvidia-smi", NVIDIA_SMI.format(python=sys.executable, answers=answers_file))
    made.program("journalctl", f"#!/bin/sh\ncat {tmp_path}/kernel.log\n")
    made.kernel_log()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    return made
