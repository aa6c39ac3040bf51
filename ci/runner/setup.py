"""Makes a bare Debian or Ubuntu a GPU runner. Run again, it changes only what is missing.

It stores no token: whoever starts the service types it in (serve.py).
"""

from __future__ import annotations

import grp
import json
import platform
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError
from toolchain.tables import read_table

from . import health
from .steps import Command, Fetch, Step, Write
from .table import load

CHECKOUT = Path(__file__).resolve().parents[2]
# What is copied to the machine: it runs before any checkout.
PROGRAM = (
    "ci/__init__.py", "ci/runner/*.py", "ci/runner/*.toml", "ci/runner/job-started.sh",
    "toolchain/__init__.py", "toolchain/errors.py", "toolchain/knobs.py", "toolchain/tables.py",
)  # fmt: skip
TABLE = Path(__file__).with_name("runner.toml")
SYSTEMS = ("debian", "ubuntu")


@dataclass(frozen=True)
class Wanted:
    """What this machine is to be. `runner`: its name in ci/matrix.toml. `archive`: GitHub's runner as a file here,
    empty to download it. `root`: where the file system begins, for a trial."""

    repository: str
    runner: str
    labels: Sequence[str]
    archive: str = ""
    root: Path = Path("/")


def labels_of(runner: str) -> list[str]:
    """The labels of a runner in ci/matrix.toml. Raises UsageError for an unknown one, or one without a GPU."""
    rows = {row["name"]: row for row in read_table(CHECKOUT / "ci/matrix.toml")["runner"] if row.get("gpu")}
    if runner not in rows:
        raise UsageError(f"ci/matrix.toml has no runner {runner!r} with a GPU", hint=f"one of {', '.join(rows)}")
    return rows[runner]["labels"]


def steps(wanted: Wanted) -> list[Step]:
    """The whole set-up, in order."""
    table = read_table(TABLE)
    paths = {name: wanted.root / path for name, path in table["paths"].items()}
    user, archive = table["user"]["name"], table["download"]
    fetch = Fetch(wanted.archive or archive["url"], paths["state"] / "actions-runner.tar.gz", archive["sha256"])
    return [
        Step("system", lambda: _system(wanted.root), advice="use Debian 12 or Ubuntu 24.04, or newer, on x86-64"),
        _packages(table["packages"]["debian"]),
        Step("driver", _driver, advice="install NVIDIA's driver 580 or newer, boot, and run this again"),
        Step(
            "container toolkit", lambda: _program("nvidia-ctk"),
            (Command(["apt-get", "install", "-y", "--no-install-recommends", table["packages"]["toolkit"]]),),
            "add NVIDIA's package archive (docs/runner.md), then run this again", needs=("system",),
        ),
        Step(
            "CDI", lambda: _cdi(paths["cdi"]),
            (Command(["nvidia-ctk", "cdi", "generate", f"--output={paths['cdi']}"]),),
            needs=("driver", "container toolkit"),
        ),
        Step("user", lambda: _user(table["user"]), _user_commands(table["user"]), needs=("system",)),
        _files("program", list(_program_files(paths["program"]))),
        _files("settings", [Write(paths["settings"], _settings(wanted, user).encode())]),
        Step("GitHub's runner", lambda: "" if fetch.there() else f"no {fetch.path} of the pinned sha256", (fetch,)),
        _files("unit", [Write(paths["unit"], (TABLE.with_name("tilestack-runner.service")).read_bytes())]),
        Step(
            "systemd", lambda: _systemd(paths["unit"].name),
            (Command(["systemctl", "daemon-reload"]),) if _has_systemd() else (),
            "start this machine with systemd", needs=("unit",),
        ),
    ]  # fmt: skip


def _system(root: Path) -> str:
    if platform.machine() != "x86_64":
        return f"this machine is {platform.machine()}; the pinned runner is for x86_64"
    try:
        text = (root / "etc/os-release").read_text()
    except OSError as error:
        return f"which system this is cannot be read: {error}"
    known = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    names = f"{known.get('ID', '')} {known.get('ID_LIKE', '')}".replace('"', "").split()
    return "" if set(names) & set(SYSTEMS) else f"this system is {' '.join(names) or 'unknown'}"


def _packages(names: Sequence[str]) -> Step:
    absent = [name for name in names if not _installed(name)]
    install = ["apt-get", "install", "-y", "--no-install-recommends", *absent]

    def missing() -> str:
        gone = [name for name in names if not _installed(name)]
        return f"packages {', '.join(gone)}" if gone else ""

    return Step("packages", missing, (Command(["apt-get", "update"]), Command(install)), needs=("system",))


def _installed(package: str) -> bool:
    asked = _output(["dpkg-query", "--show", "--showformat=${db:Status-Status}", package])
    return asked == "installed"


def _output(words: Sequence[str]) -> str:
    """What a command prints; empty if it fails or is not there."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _driver() -> str:
    """Only what belongs to the driver: a GPU that is sick otherwise is the health check's business."""
    found = health.driver(load())
    return found.fault and f"{found.found}: {found.fault}"


def _program(name: str) -> str:
    return "" if shutil.which(name) else f"no {name}"


def _cdi(path: Path) -> str:
    """The description is made for one driver: its libraries have the version in their names."""
    if not path.is_file():
        return f"no {path}"
    version = health.driver(load()).found
    return "" if version in path.read_text() else f"{path} is not of driver {version}"


def _user(wanted: Mapping[str, Any]) -> str:
    try:
        pwd.getpwnam(wanted["name"])
    except KeyError:
        return f"no user {wanted['name']}"
    there = [group for group in grp.getgrall() if group.gr_name in wanted["groups"]]
    outside = [group.gr_name for group in there if wanted["name"] not in group.gr_mem]
    return f"{wanted['name']} is not in {', '.join(outside)}" if outside else ""


def _user_commands(wanted: Mapping[str, Any]) -> list[Command]:
    name, known = wanted["name"], {group.gr_name for group in grp.getgrall()}
    commands: list[Command] = []
    if name not in {user.pw_name for user in pwd.getpwall()}:
        commands.append(Command(["useradd", "--system", "--user-group", "--shell", "/usr/sbin/nologin", name]))
    groups = [group for group in wanted["groups"] if group in known]  # systemd-journal: not without systemd
    return [*commands, *(Command(["usermod", "--append", "--groups", group, name]) for group in groups)]


def _files(name: str, files: Sequence[Write]) -> Step:
    def missing() -> str:
        gone = [str(file.path) for file in files if not file.there()]
        return f"not as they should be: {', '.join(gone)}" if gone else ""

    return Step(name, missing, files)


def _program_files(folder: Path) -> Iterator[Write]:
    for pattern in PROGRAM:
        for path in sorted(CHECKOUT.glob(pattern)):
            mode = 0o755 if path.suffix == ".sh" else 0o644
            yield Write(folder / path.relative_to(CHECKOUT), path.read_bytes(), mode)


def _settings(wanted: Wanted, user: str) -> str:
    rows = {"repository": wanted.repository, "runner": wanted.runner, "labels": list(wanted.labels), "user": user}
    lines = [f"{key} = {json.dumps(value)}" for key, value in rows.items()]  # these are the same in TOML
    return (
        "# Written by `python3 -m ci.runner setup`. There is no token here, nor anywhere else.\n"
        + "\n".join(lines)
        + "\n"
    )


def _has_systemd() -> bool:
    return Path("/run/systemd/system").is_dir() and shutil.which("systemctl") is not None


def _systemd(unit: str) -> str:
    if not _has_systemd():
        return "systemd does not run here"
    state = _output(["systemctl", "show", "--property=LoadState,NeedDaemonReload", unit])
    return "" if "LoadState=loaded" in state and "NeedDaemonReload=no" in state else f"it has not read {unit}"
