"""A git checkout that stands for ours."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from toolchain.bundles import checkout as checkouts

WHO = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git checkout of one commit, which stands for ours."""
    root = tmp_path / "checkout"
    (root / "benchmarks/results").mkdir(parents=True)
    (root / "kernels").mkdir()
    (root / "kernels/one.mlir").write_text("one")
    for command in (("init", "-q"), ("add", "-A"), (*WHO, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *command], cwd=root, check=True)
    monkeypatch.setattr(checkouts, "ROOT", root)
    return root
