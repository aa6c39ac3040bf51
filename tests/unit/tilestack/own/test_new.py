"""The repository that `tilestack init` writes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import yaml

from tilestack.own import new
from tilestack.own.run import functions
from tilestack.own.table import load
from toolchain.errors import UsageError
from toolchain.files import write_whole
from toolchain.knobs import ROOT

from ..conftest import Run


def test_its_workflow_calls_one_of_ours(tmp_path: Path) -> None:
    new.write(tmp_path / "own", "", "someone/tilestack", "v1")
    (job,) = yaml.safe_load((tmp_path / "own/.github/workflows/ci.yml").read_text())["jobs"].values()
    called, _, ref = job["uses"].partition("@")
    assert ref == "v1" and called == f"someone/tilestack/{new.WORKFLOW}"
    assert "workflow_call" in yaml.safe_load((ROOT / new.WORKFLOW).read_text())[True]
    assert not [path for path in (tmp_path / "own").rglob("*") if path.is_file() and "REQUIREMENT@" in path.read_text()]


def test_a_folder_with_files_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = run("init", tmp_path)
    assert done.code == 2 and "is not empty" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_leaves_nothing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str, *, parents: bool) -> None:
        if path.name == "noxfile.py":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_whole(path, text, parents=parents)

    monkeypatch.setattr(new, "write_whole", full)
    done = run("init", tmp_path / "own")
    assert done.code == 2 and f"{tmp_path / 'own'} cannot be written: No space left" in done.err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("origin", ["tilestack", "someone/tilestack", "a/b/c@v1"])
def test_an_origin_is_a_repository_at_a_ref(run: Run, tmp_path: Path, origin: str) -> None:
    done = run("init", tmp_path / "own", "--from", origin)
    assert done.code == 2 and "OWNER/NAME@REF" in done.err


def test_without_an_origin_it_installs_this_checkout_and_says_what_is_left(run: Run, tmp_path: Path) -> None:
    done = run("init", tmp_path / "own")
    assert done.code == 0 and "OWNER/tilestack" in done.out
    assert f"tilestack[compile,report] @ file://{ROOT}" in (tmp_path / "own/requirements.txt").read_text()
    assert (tmp_path / "own/requirements-gpu.txt").read_text() == f"tilestack[report] @ file://{ROOT}\n"


@pytest.mark.parametrize(("module", "said"), [("nowhere", "cannot be imported"), ("empty", "launch, reference")])
def test_a_module_that_cannot_be_used_is_named(tmp_path: Path, module: str, said: str) -> None:
    text = (new.TEMPLATE / "matrix.toml").read_text().replace("kernels.axpy", module)
    (tmp_path / "matrix.toml").write_text(text)
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(UsageError, match=said):
        functions(load(tmp_path / "matrix.toml")[0], tmp_path)
