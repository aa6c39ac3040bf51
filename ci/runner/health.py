"""Is this machine's GPU fit for a job? Reads nvidia-smi, the kernel log and the disk, and changes nothing.

Thresholds stand in health.toml. What cannot be read counts as sick: a GPU that is lost, or a driver that hangs, gives
no numbers.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from .table import Field, Health

ABSENT = ("[N/A]", "N/A", "[Not Supported]", "[Insufficient Permissions]")
XID = re.compile(r"NVRM: Xid \((?P<gpu>PCI:[0-9a-fA-F:.]+)\): (?P<code>\d+)(?P<rest>.*)")
GIB = 2**30


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `fault`: what is wrong and what it means; empty if nothing is."""

    subject: str
    found: str
    fault: str = ""

    def __str__(self) -> str:
        return f"{'sick' if self.fault else 'ok':4} {self.subject}: {self.found}" + (
            f" - {self.fault}" if self.fault else ""
        )


class Unreadable(Exception):
    """A command that gave no answer. The message says why."""


def check(health: Health, folder: Path, uuid: str = "", address: str = "") -> list[Finding]:
    """Everything that a job depends on. `folder`: where jobs write. `uuid` and `address` on the PCI bus: of the only
    GPU that counts; empty for all of this machine."""
    found = [*_gpus(health, uuid), *_processes(health, uuid), *_kernel_log(health, address)]
    return [*found, _disk(health, folder)]


def of_gpu(health: Health, address: str) -> list[Finding]:
    """The checks of one GPU: what nvidia-smi and the kernel's messages say of it. `address`: on the PCI bus."""
    return [*_gpus(health, address), *_kernel_log(health, address)]


def driver(health: Health) -> Finding:
    """Is there a driver that answers, and is it new enough?"""
    found = _gpus(replace(health, fields=[field for field in health.fields if field.name == "driver_version"]))
    return next(iter(faults(found)), found[0])


def faults(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.fault]


def write_reason(path: Path, findings: Sequence[Finding]) -> None:
    """Say on disk why this runner takes no more jobs."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    document = {"time": now, "faults": [asdict(finding) for finding in faults(findings)]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def _ask(command: Sequence[str], seconds: int) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False)
    except FileNotFoundError as error:
        raise Unreadable(f"there is no {command[0]}: is the driver installed?") from error
    except OSError as error:
        raise Unreadable(f"{command[0]} cannot be started: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise Unreadable(f"{command[0]} gave no answer in {seconds} s: the driver hangs") from error
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise Unreadable(f"{command[0]} exited {done.returncode}: {said[:300]}")
    return done.stdout


def query(what: str, fields: Sequence[str], seconds: int, uuid: str = "") -> list[dict[str, str]]:
    """A row for each GPU, or each process on one. Raises Unreadable."""
    command = ["nvidia-smi", f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits"]
    text = _ask([*command, *(["-i", uuid] if uuid else [])], seconds)
    rows = [row for row in csv.reader(text.splitlines(), skipinitialspace=True) if row]
    if wrong := [row for row in rows if len(row) != len(fields)]:
        raise Unreadable(f"nvidia-smi said {', '.join(wrong[0])[:300]!r}")
    return [dict(zip(fields, map(str.strip, row), strict=True)) for row in rows]


def _gpus(health: Health, uuid: str = "") -> list[Finding]:
    also = [str(field.wanted) for field in health.fields if field.rule == "same_as"]
    names = list(dict.fromkeys(["index", "name", *(field.name for field in health.fields), *also]))
    try:
        rows = query("gpu", names, health.seconds, uuid)
    except Unreadable as error:
        return [Finding("nvidia-smi", "no answer", str(error))]
    if not rows:
        return [Finding("nvidia-smi", "no GPU", "the driver lists none")]
    return [_judge(field, row) for row in rows for field in health.fields]


def _judge(field: Field, row: Mapping[str, str]) -> Finding:
    value = row[field.name]
    subject = f"gpu {row['index']} ({row['name']}) {field.name}"
    if value in ABSENT:
        return Finding(subject, value, "" if field.absent == "well" else f"it must be known: {field.why}")
    try:
        wrong = _wrong(field, value, row)
    except ValueError:  # [Unknown Error], [GPU is lost], ERR!, [GPU requires reset]
        return Finding(subject, value, "no value that can be read: the GPU is lost, or its driver is broken")
    return Finding(subject, value, f"{wrong}: {field.why}" if wrong else "")


def _wrong(field: Field, value: str, row: Mapping[str, str]) -> str:
    """How a value breaks its rule; empty if it does not. Raises ValueError for what is no value."""
    if field.rule in ("most", "least"):
        number = float(value) if field.rule == "most" else int(value.split(".")[0])
        good = number <= field.wanted if field.rule == "most" else number >= field.wanted
        return "" if good else f"{'more' if field.rule == 'most' else 'less'} than {field.wanted}"
    if field.rule == "without":
        bits = [word for word in field.wanted if int(value, 16) & int(word, 16)]
        return f"has {', '.join(bits)}" if bits else ""
    if value.startswith("[") or value == "ERR!":
        raise ValueError(value)
    if field.rule == "same_as":
        other = row[field.wanted]
        return "" if other in (value, *ABSENT) else f"{field.wanted} is {other}"
    return "" if value == field.wanted else f"not {field.wanted}"


def _processes(health: Health, uuid: str) -> Iterator[Finding]:
    try:
        rows = query("compute-apps", ["pid", "process_name", "used_memory"], health.seconds, uuid)
    except Unreadable as error:
        yield Finding("other programs", "no answer", str(error))
        return
    names = ", ".join(f"{row['process_name']} (pid {row['pid']}, {row['used_memory']} MiB)" for row in rows)
    many = len(rows) > health.processes
    yield Finding("other programs", names or "none", f"more than {health.processes}: they share the GPU" * many)


def _kernel_log(health: Health, address: str) -> Iterator[Finding]:
    tried: list[str] = []
    for command in health.kernel_logs:
        try:
            text = _ask(command, health.seconds)
        except Unreadable as error:
            tried.append(str(error))
            continue
        if text.strip():
            yield from _xids(health, text, address)
            return
        tried.append(f"{command[0]} printed nothing")
    why = "; ".join(tried)
    yield Finding(
        "kernel log", "not readable", f"Xid messages would not be seen: {why}. Group systemd-journal may read it"
    )


def _xids(health: Health, text: str, address: str) -> Iterator[Finding]:
    """nvidia-smi writes 00000000:3B:00.0 for what the kernel calls 0000:3b:00."""
    found = [(match["gpu"], int(match["code"])) for match in XID.finditer(text)]
    bus = address.lower()[-12:]
    seen = Counter(each for each in found if not bus or bus.startswith(each[0].removeprefix("PCI:").lower()))
    if not seen:
        yield Finding("kernel log", "no Xid since boot")
    for (gpu, code), count in sorted(seen.items()):
        means = health.xids.get(code, "")
        yield Finding(
            "kernel log", f"Xid {code} of {gpu}, {count} times", f"{means}; repair it, then boot" if means else ""
        )


def _disk(health: Health, folder: Path) -> Finding:
    there = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(there).free / GIB
    few = free < health.free_gib
    return Finding(f"disk of {folder}", f"{free:.1f} GiB free", f"less than {health.free_gib} GiB" * few)
