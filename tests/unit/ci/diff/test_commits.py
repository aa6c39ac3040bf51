"""Which commit made a difference, in a tiny repository whose kernel is one file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ci.diff.commits import Compile, bisect_commits, compiler, cubin_of, git
from toolchain.bundles.bundle import Bundle
from toolchain.caching.cache import Cache
from toolchain.compiling.cubin import Usage
from toolchain.errors import BundleError, ToolchainError, UsageError

from .conftest import PLAIN, Make, other

CELL = "py/gelu_1024_f16 sm_90"
Commits = Callable[[Sequence[str]], list[str]]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    git(tmp_path, "init", "--quiet", str(folder))
    for name, value in (("user.name", "Nobody"), ("user.email", "nobody@example.com")):
        git(folder, "config", name, value)
    return folder


@pytest.fixture
def commits(repository: Path) -> Commits:
    """Makes a commit for each text of the kernel."""

    def make(texts: Sequence[str]) -> list[str]:
        made: list[str] = []
        for text in texts:
            (repository / "kernel").write_text(text)
            git(repository, "add", ".")
            git(repository, "commit", "--quiet", "--allow-empty", "--message", text)
            made.append(git(repository, "rev-parse", "HEAD")[1].strip())
        return made

    return make


@pytest.fixture
def compiled(bundle: Make, usages: dict[bytes, Usage]) -> Compile:
    """A compiler whose cubin is the kernel's text. `broken` does not compile, and `slow` spills."""
    usages |= {b"fast": PLAIN, b"faster": other(registers=60), b"slow": other(spills=99)}

    def compile_(tree: Path) -> Path:
        text = (tree / "kernel").read_text()
        if text == "broken":
            raise ToolchainError("does not compile")
        return bundle("compiled", {"gelu_1024_f16": {"sm_90": text.encode()}}).root

    return compile_


def run(found: list[str], compiled: Compile, repository: Path, tmp_path: Path, check: str | None = None) -> list[str]:
    cache = Cache(tmp_path / "cache")
    return list(bisect_commits(found[0], found[-1], CELL, compiled, cache, check, repository).commits)


def test_the_commit_is_found_and_the_checkout_stays(
    repository: Path, commits: Commits, compiled: Compile, tmp_path: Path
) -> None:
    made = commits(["fast", "fast", "faster", "fast", "slow", "slow", "slow"])
    git(repository, "bisect", "start", made[-1], made[0])  # one that the user has begun
    before = git(repository, "rev-parse", "HEAD")
    assert run(made, compiled, repository, tmp_path) == [made[4]]
    assert git(repository, "rev-parse", "HEAD") == before
    assert git(repository, "rev-parse", "refs/bisect/bad")[1].strip() == made[-1]
    assert len(git(repository, "worktree", "list")[1].splitlines()) == 1


def test_what_is_said_names_the_commit_and_its_subject(
    repository: Path, commits: Commits, compiled: Compile, tmp_path: Path
) -> None:
    made = commits(["fast", "fast", "slow"])
    found = bisect_commits(made[0], made[-1], CELL, compiled, Cache(tmp_path / "cache"), None, repository)
    assert found.lines()[-1] == f"made by: {made[2][:12]} slow"
    assert found.to_json()["subjects"] == ["slow"]


def test_what_does_not_compile_is_skipped_and_named_if_it_may_be_it(
    repository: Path, commits: Commits, compiled: Compile, tmp_path: Path
) -> None:
    made = commits(["fast", "broken", "fast", "slow", "slow"])
    assert run(made, compiled, repository, tmp_path) == [made[3]]
    made = commits(["fast", "broken", "broken", "slow"])
    assert sorted(run(made, compiled, repository, tmp_path)) == sorted(made[1:])


def test_a_command_decides(repository: Path, commits: Commits, compiled: Compile, tmp_path: Path) -> None:
    made = commits(["fast", "fast", "faster", "faster"])
    script = tmp_path / "check.py"
    script.write_text(
        "import pathlib, sys\n"
        "(cubin,) = pathlib.Path(sys.argv[2]).rglob('*.cubin')\n"
        "sys.exit(cubin.read_bytes() == b'faster')\n"
    )
    check = f"{sys.executable} {script} {{base}} {{bundle}}"
    assert run(made, compiled, repository, tmp_path, check) == [made[2]]


def test_ends_that_make_no_sense(repository: Path, commits: Commits, compiled: Compile, tmp_path: Path) -> None:
    made = commits(["fast", "slow", "fast"])
    with pytest.raises(UsageError, match="is the same at"):
        run(made, compiled, repository, tmp_path)
    with pytest.raises(UsageError, match="is no ancestor of"):
        run(made[1::-1], compiled, repository, tmp_path)
    with pytest.raises(UsageError, match="nothing"):
        run(["nothing", made[0]], compiled, repository, tmp_path)
    assert len(git(repository, "worktree", "list")[1].splitlines()) == 1


def test_a_tree_is_compiled_with_its_own_toolchain(tmp_path: Path) -> None:
    nox = tmp_path / "nox"
    nox.write_text(
        "#!/bin/sh\nmkdir -p .toolchain/venv/bin\n"
        "printf '#!/bin/sh\\necho \"$@\" >&2; exit 3' > .toolchain/venv/bin/python\n"
        "chmod +x .toolchain/venv/bin/python\n"
    )
    nox.chmod(0o755)
    (tmp_path / "bundle").mkdir()
    with pytest.raises(ToolchainError, match=r"--entries \^py/gelu_1024_f16\$ --target sm_90 --output"):
        compiler(CELL, tmp_path / "bundle", str(nox))(tmp_path)
    assert not (tmp_path / "bundle").exists()  # what the commit before left
    with pytest.raises(UsageError, match="cannot be started"):
        compiler(CELL, tmp_path / "bundle", str(tmp_path / "none"))(tmp_path)


def test_a_bundle_of_another_format_is_read(bundle: Make) -> None:
    made = bundle("old", {"gelu_1024_f16": {"sm_90": b"fast"}}).root
    manifest = made / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format": ', '"format": -'))
    with pytest.raises(BundleError, match="this version reads format"):
        Bundle.load(made)
    assert cubin_of(made, CELL) == b"fast"


def test_what_is_no_cubin_of_that_kernel_is_refused(bundle: Make, tmp_path: Path) -> None:
    made = bundle("b", {"gelu_1024_f16": {"sm_90": b"fast"}}).root
    with pytest.raises(BundleError, match="no kernel py/gelu_1024_f16 sm_80"):
        cubin_of(made, "py/gelu_1024_f16 sm_80")
    with pytest.raises(BundleError, match="no kernel mlir/gelu_1024_f16 sm_90"):
        cubin_of(made, "mlir/gelu_1024_f16 sm_90")
    with pytest.raises(BundleError, match="no bundle that can be read"):
        cubin_of(tmp_path, CELL)
    (file,) = made.rglob("*.cubin")
    file.write_bytes(b"other")
    with pytest.raises(BundleError, match="has another content"):
        cubin_of(made, CELL)


def test_a_commit_without_the_kernel_is_skipped(
    repository: Path, commits: Commits, compiled: Compile, bundle: Make, tmp_path: Path
) -> None:
    def other_kernel_if_new(tree: Path) -> Path:
        if (tree / "kernel").read_text() == "new":
            return bundle("compiled", {"softmax_1024_f16": {"sm_90": b"new"}}).root
        return compiled(tree)

    made = commits(["fast", "new", "slow"])
    assert run(made, other_kernel_if_new, repository, tmp_path) == made[1:]
