"""Decides how the two builds differ: in paths, environment, user, hostname, clock and order of files.

If this machine does not allow a condition to be varied, the report says so, and why.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from toolchain import knobs

NOBODY = 65534
LATER = "+400d"  # the second build's clock, where faketime can set it
LOCALES = (
    "tr_TR.utf8",
    "en_US.utf8",
    "C.utf8",
)  # for the second build, the first that is installed; in Turkish the lower case of I is not i
MEMORY = Path("/dev/shm")
CAPABILITY = "dac_read_search"  # it lets the other user read files in root's home, where Python or the checkout may be


@dataclass(frozen=True)
class Varied:
    """One condition: its values in the two builds, or the reason why it could not be varied."""

    what: str
    first: str
    second: str
    reason: str = ""


@dataclass(frozen=True)
class Side:
    """One of the two builds.

    `wrappers`: words to put before a command, by the condition that they vary, outermost first.
    `uid`: the user to run as; None is our own.
    `backwards`: its copy's files are written in reverse order, with the current time.
    """

    name: str
    folder: Path
    checkout: Path
    home: Path
    tmp: Path
    toolchain: Path
    environment: Mapping[str, str]
    wrappers: Mapping[str, tuple[str, ...]]
    umask: int
    uid: int | None
    backwards: bool

    def out(self, artefact: str) -> Path:
        return self.folder / "out" / artefact

    def wrapped(self, command: Sequence[str], keep: Mapping[str, str]) -> list[str]:
        """The command with its wrappers. `keep`: conditions that are not varied."""
        words = [
            word for what, prefix in self.wrappers.items() if not set(what.split("+")) & set(keep) for word in prefix
        ]
        return [*words, *command]


def installed_locales() -> list[str]:
    """The locales of this machine, spelled as glibc does: `tr_TR.utf8`."""
    if (program := shutil.which("locale")) is None:
        return []
    done = subprocess.run([program, "-a"], capture_output=True, text=True, check=False)
    return done.stdout.split()


# access(2) ignores capabilities and checks the user's own rights. Tools use it to find each other.
_ENTERS = "import os, sys; sys.exit(next((f'no access to {p}' for p in sys.argv[1:] if not os.access(p, os.X_OK)), 0))"


def refusal(prefix: Sequence[str], python: Path, places: Sequence[Path]) -> str | None:
    """Why Python cannot run with these words before it, or cannot use these folders; None if it can."""
    command = [*prefix, str(python), "-c", _ENTERS, *map(str, places)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = " ".join(done.stderr.split())
    return f"{prefix[0]} exited {done.returncode}: {said}" if done.returncode else None


@contextmanager
def memory_folder(parent: Path = MEMORY) -> Generator[Path | None]:
    """A folder in memory, where files are listed in another order than on a disk; None if there is none."""
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="tilestack-the-second-of-two-builds-", dir=parent))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


def _is_later(prefix: Sequence[str], python: Path) -> bool:
    """True if Python with these words before it sees a clock that is set forward."""
    command = [*prefix, str(python), "-c", "import time; print(time.time())"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout) > time.time() + 300 * 86400


def plan(
    work: Path, *, epoch: int, python: Path, memory: Path | None = None, root: bool | None = None
) -> tuple[Side, Side, list[Varied]]:
    """The two builds, in folders under `work`, and the conditions in which they differ. `epoch`: SOURCE_DATE_EPOCH of
    both. `memory`: a folder on another file system, for the second copy of the checkout."""
    root = os.geteuid() == 0 if root is None else root
    wrappers, rows = _namespaces(
        python, [p for p in (work, memory, knobs.toolchain_dir()) if p and p.exists()], root=root
    )
    uid = NOBODY if any("user" in what.split("+") for what in wrappers) and root else None
    folders = (work / "a", work / "the-second-of-two-builds" / "its-path-is-longer" / "and deeper")
    users = ("builder", "someone-else")
    cpus = len(os.sched_getaffinity(0))
    locales = ("C", next((name for name in LOCALES if name in installed_locales()), "C"))
    environments = (
        {"TZ": "UTC", "LC_ALL": locales[0], "LANG": locales[0], "PYTHONHASHSEED": "1", knobs.JOBS.name: "1",
         "PATH": "/usr/local/bin:/usr/bin:/bin"},
        {"TZ": "<+14>-14", "LC_ALL": locales[1], "LANG": locales[1], "PYTHONHASHSEED": "4242",
         knobs.JOBS.name: str(max(2, cpus)), "PATH": "/usr/bin:/bin:/usr/local/bin:/nowhere"},
    )  # fmt: skip
    umasks = (0o022, 0o077)
    sides: list[Side] = []
    for number, folder in enumerate(folders):
        checkout = (memory or folder) / "checkout" if number else folder / "c"
        side = Side(
            name=("first", "second")[number],
            folder=folder,
            checkout=checkout,
            home=folder / ("home of someone else" if number else "home"),
            tmp=folder / ("temporary" if number else "t"),
            toolchain=folder / "toolchain" if number and knobs.toolchain_dir().is_dir() else knobs.toolchain_dir(),
            environment={},
            wrappers=wrappers if number else {},
            umask=umasks[number],
            uid=uid if number else None,
            backwards=bool(number),
        )
        environment = {
            **environments[number],
            "HOME": str(side.home),
            "TMPDIR": str(side.tmp),
            "USER": users[number],
            "LOGNAME": users[number],
            "PYTHONPATH": str(checkout),  # use the sources of this copy, not those that the environment was made from
            "SOURCE_DATE_EPOCH": str(epoch),
            knobs.TOOLCHAIN.name: str(side.toolchain),
            knobs.CACHE_DIR.name: str(folder / "cache"),
        }
        sides.append(replace(side, environment=environment))
    one, two = sides
    return one, two, [*_settings(one, two), *rows]


def _settings(one: Side, two: Side) -> list[Varied]:
    """The conditions that the environment and the umask vary."""
    rows = [Varied("path of the checkout", str(one.checkout), str(two.checkout))]
    for what, name in (("home folder", "HOME"), ("temporary folder", "TMPDIR"), ("time zone", "TZ"), ("USER", "USER"),
                       ("PATH", "PATH"), ("PYTHONHASHSEED", "PYTHONHASHSEED"), ("jobs at once", knobs.JOBS.name),
                       ("path of the toolchain", knobs.TOOLCHAIN.name)):  # fmt: skip
        first, second = one.environment[name], two.environment[name]
        rows.append(Varied(what, first, second, "there is no toolchain to link" if first == second else ""))
    first, second = one.environment["LC_ALL"], two.environment["LC_ALL"]
    rare = " and ".join(LOCALES[:2])
    note = "" if second in LOCALES[:2] else f" ({rare} are not installed)"
    rows.append(Varied("locale", first, second + note, "no other locale is installed" if first == second else ""))
    rows.append(Varied("umask", f"{one.umask:03o}", f"{two.umask:03o}"))
    return rows


def _namespaces(python: Path, places: Sequence[Path], *, root: bool) -> tuple[dict[str, tuple[str, ...]], list[Varied]]:
    """The wrappers of the second build's commands, as far as they work on this machine."""
    wrappers: dict[str, tuple[str, ...]] = {}
    host, other, me = socket.gethostname(), "another-host", f"uid {os.geteuid()}"
    rename = ("sh", "-c", 'hostname "$0" && exec "$@"', other)
    options: dict[str, tuple[str, ...]] = {}
    if root:
        named = ("unshare", "--uts", "--", *rename)
        lowered = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                   f"--inh-caps=+{CAPABILITY}", f"--ambient-caps=+{CAPABILITY}")  # fmt: skip
        options |= {"hostname": named, "user": lowered}
        values = {"hostname": (host, other), "user": (me, f"uid {NOBODY}")}
    else:
        options |= {"hostname+user": ("unshare", "--user", "--map-root-user", "--uts", "--", *rename)}
        values = {"hostname": (host, other), "user": (me, "uid 0 of a user namespace")}
    options["time"] = ("faketime", "-f", LATER)
    values["time"] = ("this machine's", f"{LATER} (Python and uv; the toolchain's tools see this machine's)")
    rows: list[Varied] = []
    for key, prefix in options.items():
        before = [word for words in wrappers.values() for word in words]
        program = shutil.which(prefix[0])
        words = (program or prefix[0], *prefix[1:])
        why = refusal([*before, *words], python, places) if program else f"{prefix[0]} is not installed"
        if why is None and key == "time" and not _is_later([*before, *words], python):
            why = f"{program} leaves the clock as it is"
        if why is None:
            wrappers[key] = words
        for what in key.split("+"):
            first, second = values[what]
            rows.append(Varied(what, first, second if why is None else first, why or ""))
    return wrappers, rows
