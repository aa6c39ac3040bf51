"""The programs in a prefix's `bin`, for tools that were built on this machine: here they are shell scripts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from toolchain.native.wrappers import write_wrappers
from toolchain.pinned.pins import file_sha256

SCRIPTS = {"copy": 'cat "$@"', "fails": "echo 'error: bad module' >&2; exit 7", "odd name": "pwd"}


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A toolchain that was built without a container, with a blank in its path."""
    made = tmp_path / "a prefix"
    (made / "libexec").mkdir(parents=True)
    tools: dict[str, dict[str, str]] = {}
    for name, code in SCRIPTS.items():
        script = made / "libexec" / name
        script.write_text(f"#!/bin/sh\n{code}\n")
        script.chmod(0o755)
        tools[name] = {"path": f"libexec/{name}", "sha256": file_sha256(script)}
    facts = {"stack": "13.1", "llvm": {"version": "22.1.8"}, "image": "here", "tools": tools, "packages": []}
    (made / "tools.json").write_text(json.dumps(facts))
    write_wrappers(made)
    return made


def call(program: Path, *arguments: str, stdin: str = "", folder: Path | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [program, *arguments], input=stdin, capture_output=True, text=True, check=False, cwd=folder or program.parent
    )
    return done.returncode, done.stdout, done.stderr


def test_each_tool_has_a_program(prefix: Path):
    assert sorted(path.name for path in (prefix / "bin").iterdir()) == sorted(SCRIPTS)


def test_a_program_runs_its_tool_as_the_caller_would(prefix: Path, tmp_path: Path):
    (tmp_path / "file").write_text("of a file\n")
    assert call(prefix / "bin/copy", "-", "file", stdin="typed\n", folder=tmp_path) == (0, "typed\nof a file\n", "")
    assert call(prefix / "bin/fails") == (7, "", "error: bad module\n")
    assert call(prefix / "bin/odd name", folder=tmp_path) == (0, f"{tmp_path}\n", "")


def test_a_program_is_found_through_links(prefix: Path, tmp_path: Path):
    (tmp_path / "current").symlink_to(prefix)
    (tmp_path / "link").symlink_to("current/bin/fails")
    assert call(tmp_path / "link")[0] == 7


def test_another_package_of_our_name_in_the_callers_folder_is_not_imported(prefix: Path, tmp_path: Path):
    (tmp_path / "toolchain").mkdir()
    (tmp_path / "toolchain/__init__.py").write_text("raise SystemExit('not ours')\n")
    assert call(prefix / "bin/copy", stdin="typed\n", folder=tmp_path) == (0, "typed\n", "")


def test_a_tool_that_was_changed_is_refused(prefix: Path):
    (prefix / "libexec/copy").write_text("#!/bin/sh\n")
    code, _, said = call(prefix / "bin/copy")
    assert code == 4
    assert f"error: {prefix}/libexec/copy differs from the file that was built\n  next: rm -r " in said
