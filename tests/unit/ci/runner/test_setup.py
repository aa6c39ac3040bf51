"""What set-up finds and would do; that it does it stands in tests/compile/ci/test_runner.py, in a container."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ci.runner import setup
from ci.runner.__main__ import main
from ci.runner.setup import TABLE, Wanted, labels_of, steps
from ci.runner.steps import Write, follow
from toolchain.errors import UsageError

from .conftest import Machine


def wanted(root: Path) -> Wanted:
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/os-release").write_text("ID=linuxmint\nID_LIKE=debian\n")
    return Wanted("owner/name", "h200", ["gpu"], root=root)


def test_labels_come_from_the_matrix() -> None:
    assert labels_of("h200") == ["self-hosted", "linux", "gpu", "h200"]
    with pytest.raises(UsageError, match="no runner 'hosted' with a GPU"):
        labels_of("hosted")


def test_what_is_downloaded_is_pinned() -> None:
    pinned = tomllib.loads(TABLE.read_text())["download"]
    assert re.fullmatch("[0-9a-f]{64}", pinned["sha256"])
    assert pinned["url"].count(pinned["version"]) == 2 and pinned["url"].startswith("https://")


@pytest.mark.usefixtures("machine")
def test_a_dry_run_says_all_and_does_nothing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    results = {each.name: each for each in follow(steps(wanted(root)), dry=True, say=str)}
    assert results["system"].state == results["driver"].state == "ok"
    assert results["GitHub's runner"].state == results["unit"].state == results["settings"].state == "would"
    assert [path.name for path in root.rglob("*") if path.is_file()] == ["os-release"]


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(("text", "said"), [("ID=fedora\n", "this system is fedora"), (None, "cannot be read")])
def test_another_system_ends_what_needs_it(tmp_path: Path, text: str | None, said: str) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    if text:
        (root / "etc/os-release").write_text(text)
    results = {each.name: each for each in follow(steps(Wanted("o/n", "h200", [], root=root)), dry=True, say=str)}
    assert results["system"].state == "missing" and said in results["system"].lines[0]
    assert results["packages"].state == results["user"].state == "not run"


def test_an_old_driver_is_named(machine: Machine, tmp_path: Path) -> None:
    machine.set(driver_version="550.54")
    results = {each.name: each for each in follow(steps(wanted(tmp_path)), dry=True, say=str)}
    assert results["driver"].lines[0] == "550.54: less than 580: cubins of CUDA 13 need driver 580"
    assert results["CDI"].state == "not run"


def test_the_description_of_gpus_is_made_anew_for_another_driver(machine: Machine, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    machine.program(
        "nvidia-ctk", f"#!/bin/sh\nmkdir {root}/etc/cdi && echo lib.580.159.04 > {root}/etc/cdi/nvidia.yaml\n"
    )
    machine.program("nvidia-smi", "#!/bin/sh\necho 0, fake, 580.159.04\n")
    (step,) = (each for each in steps(wanted(root)) if each.name == "CDI")
    assert "no " in step.missing()
    step.actions[0].act()
    assert step.missing() == ""
    machine.program("nvidia-smi", "#!/bin/sh\necho 0, fake, 590.10\n")
    assert "is not of driver 590.10" in step.missing()


@pytest.mark.usefixtures("machine")
def test_the_settings_have_no_token(tmp_path: Path) -> None:
    files = [action for step in steps(wanted(tmp_path)) for action in step.actions if isinstance(action, Write)]
    (settings,) = (file for file in files if file.path.name == "tilestack-runner.toml")
    assert tomllib.loads(settings.content.decode()) == {
        "repository": "owner/name", "runner": "h200", "labels": ["gpu"], "user": "tilestack-runner",
    }  # fmt: skip


def test_the_program_runs_from_where_it_is_copied_to(tmp_path: Path) -> None:
    """Without a checkout and without any package."""
    for file in setup._program_files(tmp_path):
        file.act()
    words = [sys.executable, "-S", "-m", "ci.runner", "--help"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "health" in done.stdout, done.stderr
    assert (tmp_path / "ci/runner/job-started.sh").stat().st_mode & 0o111


def test_the_hook_and_the_unit_name_the_paths_of_the_table() -> None:
    paths = tomllib.loads(TABLE.read_text())["paths"]
    hook = TABLE.with_name("job-started.sh").read_text()
    unit = TABLE.with_name("tilestack-runner.service").read_text()
    assert f"cd /{paths['program']} " in hook and f"--folder /{paths['state']}" in hook
    assert f"WorkingDirectory=/{paths['program']}\n" in unit
    assert f"ConditionPathExists=!/{paths['state']}/sick.json" in unit


def test_wrong_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "--repository", "name", "--runner", "h200", "--dry-run"]) == 2
    assert "not OWNER/NAME" in capsys.readouterr().err
