"""pyproject.toml, the locks and pins.toml say the same."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolchain.errors import ToolchainError
from toolchain.knobs import ROOT
from toolchain.pinned.pins import pins
from toolchain.pinned.stacks import stacks
from toolchain.setup import native
from toolchain.setup.update import MACHINES, STACK, TOOLS, read_lock, render_pins

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = ("requirements.lock", "bootstrap.lock")


def direct(lock: str) -> list[Requirement]:
    """The requirements of pyproject.toml that the lock is made from."""
    project, groups = PYPROJECT["project"], PYPROJECT["dependency-groups"]
    if lock == "bootstrap.lock":
        return [Requirement(text) for text in groups["bootstrap"]]
    optional = [text for texts in project["optional-dependencies"].values() for text in texts]
    return [Requirement(text) for text in (*project["dependencies"], *optional, *groups["dev"])]


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_holds_every_direct_dependency_at_a_version_that_fits(lock: str):
    locked = read_lock((ROOT / lock).read_text())
    for requirement in direct(lock):
        name = canonicalize_name(requirement.name)
        assert name in locked, f"{name}: run nox -s update_pins"
        assert requirement.specifier.contains(locked[name].version), f"{name}: run nox -s update_pins"


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_names_hashes_but_no_index(lock: str):
    text = (ROOT / lock).read_text()
    assert not re.search(r"://|--index|--extra-index|--find-links|--trusted-host| @ ", text)
    packages = read_lock(text)
    assert len(packages) == len(re.findall(r"^\S+==", text, re.MULTILINE))
    assert all(package.sha256 for package in packages.values())


def test_pins_are_what_update_pins_writes_from_the_lock():
    locked = read_lock((ROOT / "requirements.lock").read_text())
    hashes = {machine: {name: pin.sha256[machine] for name, pin in pins().tools.items()} for machine in MACHINES}
    wheels = render_pins({name: locked[name].version for name in STACK}, hashes)
    assert (ROOT / "toolchain/pinned/pins.toml").read_text() == f"{wheels}\n{native.render(stacks())}"


def test_the_nvidia_tools_are_of_one_version():
    assert len({pins().wheels[tool.wheel] for tool in TOOLS.values()}) == 1


def test_each_machine_has_its_own_build_of_each_tool():
    hashes = [sha for pin in pins().tools.values() for sha in pin.sha256.values()]
    assert all(re.fullmatch("[0-9a-f]{64}", sha) for sha in hashes)
    assert len(set(hashes)) == len(hashes) == len(TOOLS) * len(MACHINES)


def test_a_lock_with_two_versions_of_a_package_is_refused():
    with pytest.raises(ToolchainError, match="numpy at two versions"):
        read_lock("numpy==2.4.6 ; python_version < '3.12' \\\n    --hash=sha256:00\nnumpy==2.5.0 \\\n")
