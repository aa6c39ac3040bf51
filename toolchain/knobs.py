"""Every environment variable that we read, here and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .errors import UsageError

ROOT = Path(__file__).resolve().parent.parent  # the checkout
ENTRIES = ROOT / "entries"  # the tables of entries: toolchain/contract/entries.py

LAST_SECOND = 253402300799  # of the year 9999: the last that a date of four digits can write
MOST_DIGITS = 4  # of a number of compiles


@dataclass(frozen=True)
class Knob:
    """An environment variable: its name, what it sets, and in words what holds if it is not set."""

    name: str
    doc: str
    default: str


CACHE_DIR = Knob(
    "TILESTACK_CACHE_DIR", "folder of the compile cache", "$XDG_CACHE_HOME/tilestack or ~/.cache/tilestack"
)
CACHE_URL = Knob(
    "TILESTACK_CACHE_URL", "address of a compile cache that machines share, such as s3://bucket/folder", "none is used"
)
CACHE_PUBLIC_KEY = Knob(
    "TILESTACK_CACHE_PUBLIC_KEY",
    "the keys whose entries in the shared cache are trusted, with commas between them",
    "the one that belongs to TILESTACK_CACHE_SIGNING_KEY",
)
CACHE_SIGNING_KEY = Knob(
    "TILESTACK_CACHE_SIGNING_KEY", "the secret key that signs what we write to the shared cache", "it is only read"
)
TOOLCHAIN = Knob("TILESTACK_TOOLCHAIN", "folder of the toolchain", ".toolchain in the checkout")
JOBS = Knob(
    "TILESTACK_JOBS",
    "how many compiles, cells of the matrix, or layers to load run at once",
    "the number of usable CPU cores",
)

INTERPRET = Knob(
    "TILESTACK_INTERPRET",
    "1, to run every cuTile launch of a process that imports tilestack on the CPU interpreter; or settings for it, "
    "any of target=sm_90,sanitize=off,padding=strict",
    "launches run on a GPU",
)

ENGINE = Knob(
    "TILESTACK_ENGINE", "address of the container engine, unix:///path", "DOCKER_HOST, or the first usual socket"
)
IMAGE = Knob(
    "TILESTACK_IMAGE", "the id of the container image that a run is in, for its results", "it is in none of ours"
)
DEBIAN_MIRROR = Knob("TILESTACK_DEBIAN_MIRROR", "address of a Debian mirror", "the one that this machine's apt uses")
SOURCE_DATE_EPOCH = Knob("SOURCE_DATE_EPOCH", "the time that SBOMs carry, in seconds since 1970", "they carry none")
CONAN_AUDIT_TOKEN = Knob(
    "CONAN_AUDIT_PROVIDER_TOKEN_CONANCENTER",
    "token for `conan audit`, which https://conan.io/audit/register gives out",
    "the native packages are not audited",
)

# The variables with which a package client in a container reaches the same servers as this machine.
NETWORK_SETTINGS = (
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT",
)  # fmt: skip

NO_COLOR = Knob("NO_COLOR", "anything, for output without colours on a terminal", "colours on a terminal")

NUMPY_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# glibc's malloc: memory that a process gives back stays its own, and is not taken anew from the system for each array.
KEPT_MEMORY = {
    "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(1 << 26),
    "MALLOC_ARENA_MAX": "1",
}  # fmt: skip


def cache_dir() -> Path:
    """The folder of the compile cache. Raises UsageError if it is not set and no home folder is known."""
    if chosen := _folder(CACHE_DIR):
        return chosen
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "tilestack"
    try:
        return Path.home() / ".cache" / "tilestack"
    except RuntimeError as error:  # as in a container, of a user that it does not know
        raise UsageError("no home folder is known, so no place for the cache", hint=f"set {CACHE_DIR.name}") from error


def cache_url() -> str | None:
    """The address of the shared compile cache, if there is one."""
    return os.environ.get(CACHE_URL.name) or None


def cache_public_keys() -> list[str]:
    """The public keys whose entries in the shared cache are trusted."""
    return [each.strip() for each in os.environ.get(CACHE_PUBLIC_KEY.name, "").split(",") if each.strip()]


def cache_signing_key() -> str | None:
    """The secret key that signs entries, if we may write to the shared cache."""
    return os.environ.get(CACHE_SIGNING_KEY.name, "").strip() or None


def toolchain_dir() -> Path:
    """The folder of the toolchain. Raises UsageError if it begins with `~` of an unknown user."""
    return _folder(TOOLCHAIN) or ROOT / ".toolchain"


def _folder(knob: Knob) -> Path | None:
    if not (chosen := os.environ.get(knob.name)):
        return None
    try:
        return Path(chosen).expanduser().absolute()
    except RuntimeError as error:  # ~ of a user who is not known here
        raise UsageError(f"{knob.name}={chosen!r}: {error}", hint=f"name the {knob.doc} without ~") from error


def jobs() -> int:
    """How much runs at once: see JOBS. Raises UsageError if TILESTACK_JOBS is not a positive integer."""
    chosen = os.environ.get(JOBS.name)
    if not chosen:
        return len(os.sched_getaffinity(0))
    if not chosen.isdecimal() or len(chosen) > MOST_DIGITS or int(chosen) == 0:
        raise UsageError(f"{JOBS.name}={chosen[:20]!r} is not an integer from 1 to 9999", hint=f"unset {JOBS.name}")
    return int(chosen)


def interpret() -> str | None:
    """How launches run on the interpreter, if they do."""
    return os.environ.get(INTERPRET.name) or None


def interpret_children(settings: str, folder: Path) -> None:
    """Lets the Python processes that this one starts run launches on the interpreter too. `folder`: one with a
    sitecustomize.py that sees to it."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *([before] if before else [])])
    os.environ[INTERPRET.name] = settings


def with_our_packages(more: Sequence[Path] = ()) -> dict[str, str]:
    """This process's environment, for a Python of another environment that imports our packages from here, and others
    from the folders `more`."""
    return importing_from(ROOT, *more)


def importing_from(*folders: Path) -> dict[str, str]:
    """This process's environment, for a Python that looks into these folders first."""
    before = os.environ.get("PYTHONPATH")
    paths = [*map(str, folders), *([before] if before else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def with_one_gpu(uuid: str) -> dict[str, str]:
    """This process's environment, for a program that is to see one GPU alone, as its number 0."""
    return {**os.environ, "CUDA_VISIBLE_DEVICES": uuid}


def chosen_tmpdir() -> Path | None:
    """The folder for temporary files that the user named. Python takes another one where it cannot be written."""
    return Path(chosen) if (chosen := os.environ.get("TMPDIR")) else None


def plain_output() -> bool:
    """True if the user wants no colours, or the terminal knows none: https://no-color.org."""
    return bool(os.environ.get(NO_COLOR.name)) or os.environ.get("TERM") == "dumb"


def one_numpy_thread() -> AbstractContextManager[None]:
    """Makes processes started inside the block multiply matrices in one thread each, because there is one process for
    each core."""
    return _for_children(dict.fromkeys(NUMPY_THREADS, "1"))


def kept_memory() -> AbstractContextManager[None]:
    """Makes processes started inside the block keep the memory of arrays for the next ones. Of what large arrays take,
    a third can be the system's, which clears each page that it gives out."""
    return _for_children(KEPT_MEMORY)


@contextmanager
def _for_children(variables: Mapping[str, str]) -> Generator[None]:
    kept = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def engine_address() -> str | None:
    """The address of the container engine, if the user has set one."""
    return os.environ.get(ENGINE.name) or os.environ.get("DOCKER_HOST")


def container_image() -> str:
    """The id of the container image that this process runs in, as whoever started it says; empty for none of ours."""
    return os.environ.get(IMAGE.name, "")


def runtime_dir() -> str | None:
    """The folder in which a user's own services have their sockets."""
    return os.environ.get("XDG_RUNTIME_DIR")


def link_mode() -> str:
    """How uv puts packages into an environment. By copies, if its own UV_LINK_MODE says nothing: a tool that is damaged
    in place must not damage uv's cache, from which it is mended."""
    return os.environ.get("UV_LINK_MODE") or "copy"


def debian_mirror() -> str | None:
    """The Debian mirror that the user named."""
    return os.environ.get(DEBIAN_MIRROR.name)


def network_settings() -> dict[str, str]:
    """The settings of package clients that a container needs too."""
    return {name: os.environ[name] for name in NETWORK_SETTINGS if name in os.environ}


def certificates() -> Path | None:
    """The file of certificates that this machine trusts, or None if it has no such file."""
    usual = "/etc/ssl/certs/ca-certificates.crt"
    path = Path(os.environ.get("SSL_CERT_FILE") or usual)
    return path if path.is_file() else None


def tool_environment() -> dict[str, str]:
    """The environment of a tool of the toolchain: a folder for temporary files and a fixed locale.

    The tools read CUDA_HOME, LLVM_* and the like, and look for each other on PATH. None of that may change their
    output, so none of it is passed on.
    """
    return {"LC_ALL": "C", "TMPDIR": os.environ.get("TMPDIR", "/tmp")}


def build_environment() -> dict[str, str]:
    """The environment of a build by Conan. It leaves out the user's own compilers, flags, search paths and settings of
    those tools, which would change the build or where it is installed."""
    compiling = (
        "CC", "CXX", "CPPFLAGS", "CFLAGS", "CXXFLAGS", "LDFLAGS", "MLIR_DIR", "CPATH", "C_INCLUDE_PATH",
        "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "DESTDIR",
        "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE",
    )  # fmt: skip
    foreign = ("CONAN_", "CMAKE_", "LLVM", "NINJA_")
    return {name: value for name, value in os.environ.items() if name not in compiling and not name.startswith(foreign)}


def source_date_epoch() -> int | None:
    """The time to write into our output, if any: https://reproducible-builds.org/specs/source-date-epoch.

    Raises UsageError if it is not a number of seconds.
    """
    chosen = os.environ.get(SOURCE_DATE_EPOCH.name)
    if not chosen:
        return None
    if not chosen.isdecimal() or len(chosen) > len(str(LAST_SECOND)) or int(chosen) > LAST_SECOND:
        raise UsageError(f"{SOURCE_DATE_EPOCH.name}={chosen[:20]!r} is not a number of seconds since 1970")
    return int(chosen)


@dataclass(frozen=True)
class ProcessGroup:
    """Which of several processes this is, as torchrun's variables say. `local`: its number on its host. `meeting`: what
    those of one run have in common."""

    rank: int
    ranks: int
    local: int
    meeting: str


_GROUP = ("RANK", "WORLD_SIZE", "LOCAL_RANK")


def process_group() -> ProcessGroup | None:
    """None for a process that is on its own. Raises UsageError for variables that are none, or not all there."""
    given = {name: os.environ[name] for name in _GROUP if os.environ.get(name)}
    if "WORLD_SIZE" not in given or given["WORLD_SIZE"] == "1":
        return None
    for name in _GROUP:
        if not given.get(name, "").isdecimal():
            raise UsageError(
                f"WORLD_SIZE is {given['WORLD_SIZE']}, and {name} is {given.get(name, 'not set')!r}",
                hint="torchrun sets RANK, WORLD_SIZE and LOCAL_RANK; unset them for one process",
            )
    rank, ranks, local = (int(given[name]) for name in _GROUP)
    meeting = " ".join(os.environ.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"))
    return ProcessGroup(rank, ranks, local, meeting)


def in_process_group(rank: int, ranks: int, port: str) -> dict[str, str]:
    """This process's environment, for one of several that run a model together on this host. `port`: what is its run's
    own."""
    numbers = dict.fromkeys(("RANK", "LOCAL_RANK"), str(rank))
    return {**os.environ, **numbers, "WORLD_SIZE": str(ranks), "MASTER_ADDR": "localhost", "MASTER_PORT": port}


@dataclass(frozen=True)
class CIRun:
    """A run of a workflow: the address of its repository, of the workflow with its ref, and of the run itself."""

    repository: str
    workflow: str
    run: str


def ci_run() -> CIRun | None:
    """The CI run that this is part of, as GitHub Actions describes it, or None outside of one.

    https://docs.github.com/actions/reference/workflows-and-actions/variables
    """
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return None
    names = ("SERVER_URL", "REPOSITORY", "WORKFLOW_REF", "RUN_ID", "RUN_ATTEMPT")
    if lacking := [f"GITHUB_{name}" for name in names if not os.environ.get(f"GITHUB_{name}")]:
        raise UsageError(f"GITHUB_ACTIONS is true, but {', '.join(lacking)} is not set")
    server, repository, workflow, run, attempt = (os.environ[f"GITHUB_{name}"] for name in names)
    here = f"{server}/{repository}"
    return CIRun(here, f"{server}/{workflow}", f"{here}/actions/runs/{run}/attempts/{attempt}")


def has_conan_audit_token() -> bool:
    """True if Conan's audit service can be used; Conan reads the token itself."""
    return bool(os.environ.get(CONAN_AUDIT_TOKEN.name))
