from __future__ import annotations

import ast
from pathlib import Path

import pytest

from toolchain import knobs
from toolchain.errors import UsageError

PACKAGES = ("benchmarks", "ci", "examples", "gpt", "kernels_mlir", "kernels_py", "tilestack", "toolchain")


def reads_environment(path: Path) -> bool:
    """Whether a module names os.environ or os.getenv, however it imported it."""
    names = {"environ", "environb", "getenv", "getenvb"}
    nodes = list(ast.walk(ast.parse(path.read_text())))
    return any(isinstance(n, ast.Attribute) and n.attr in names for n in nodes) or any(
        alias.name in names for n in nodes if isinstance(n, ast.ImportFrom) and n.module == "os" for alias in n.names
    )


def test_only_knobs_reads_the_environment():
    modules = [path for package in PACKAGES for path in sorted((knobs.ROOT / package).rglob("*.py"))]
    assert [str(p.relative_to(knobs.ROOT)) for p in modules if reads_environment(p)] == ["toolchain/knobs.py"]


def test_folders_follow_their_variables(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.delenv("TILESTACK_CACHE_DIR", raising=False)
    assert knobs.cache_dir() == Path("/xdg/tilestack")
    monkeypatch.setenv("TILESTACK_CACHE_DIR", "relative")
    assert knobs.cache_dir() == Path.cwd() / "relative"
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", "/elsewhere")
    assert knobs.toolchain_dir() == Path("/elsewhere")
    monkeypatch.delenv("TILESTACK_TOOLCHAIN")
    assert knobs.toolchain_dir() == knobs.ROOT / ".toolchain"


def test_jobs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILESTACK_JOBS", "7")
    assert knobs.jobs() == 7
    for bad in ("0", "-1", "two", "1.5"):
        monkeypatch.setenv("TILESTACK_JOBS", bad)
        with pytest.raises(UsageError, match="TILESTACK_JOBS"):
            knobs.jobs()
