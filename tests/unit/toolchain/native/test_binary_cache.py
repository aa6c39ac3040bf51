"""Built packages in a folder: a saved package can be restored, anything else is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolchain.errors import ToolchainError, ToolFailed
from toolchain.native.binary_cache import restore, save
from toolchain.native.conan import Package

from .conftest import Stub

LLVM = Package("llvm/22.1.8#" + "a" * 32, "b" * 40, there=False)
WANTED = f"{LLVM.reference}:{LLVM.package_id}"
SAVES = """
if arguments[:2] == ["cache", "save"]:
    pathlib.Path(arguments[arguments.index("--file") + 1]).write_text("archive of " + arguments[2])
"""


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "packages"


@pytest.fixture
def saved(stub: Stub, kept: Path) -> Path:
    """The archive of LLVM."""
    stub.does(SAVES)
    return save(stub.conan, kept, LLVM)


def test_what_was_saved_comes_back(stub: Stub, kept: Path, saved: Path):
    assert saved == kept / f"llvm-22.1.8-{'a' * 12}-{LLVM.package_id}.tgz"
    assert saved.read_text() == f"archive of {WANTED}"
    assert restore(stub.conan, kept, LLVM)
    asked = [call[:3] for call in stub.calls()]
    # Conan looks through the files that it took.
    assert asked[1:] == [["cache", "restore", str(saved)], ["cache", "check-integrity", WANTED]]


@pytest.mark.usefixtures("saved")
def test_other_packages_are_other_archives(stub: Stub, kept: Path):
    others = [
        Package(LLVM.reference, "c" * 40, there=False),
        Package("llvm/22.1.8#" + "c" * 32, LLVM.package_id, there=False),
        Package("llvm/23.1.1#" + "a" * 32, LLVM.package_id, there=False),
    ]
    assert [restore(stub.conan, kept, other) for other in others] == [False] * 3
    assert len({save(stub.conan, kept, other) for other in (LLVM, *others)}) == 4


def test_a_changed_archive_is_refused(stub: Stub, kept: Path, saved: Path):
    saved.write_text("something else")
    with pytest.raises(ToolchainError, match=rf"changed or damaged, so it is not used\n(.|\n)*rm {saved}"):
        restore(stub.conan, kept, LLVM)
    assert len(stub.calls()) == 1  # Conan was not asked to take it


def test_a_note_of_another_package_is_refused(stub: Stub, kept: Path, saved: Path):
    other = Package("llvm/22.1.8#" + "a" * 31 + "c", LLVM.package_id, there=False)  # whose archive has the same name
    with pytest.raises(ToolchainError, match=rf"{saved} is {WANTED}, not {other.reference}"):
        restore(stub.conan, kept, other)
    assert len(stub.calls()) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"sha256": "0"}'])
def test_a_damaged_note_is_refused(stub: Stub, kept: Path, saved: Path, text: str):
    saved.with_suffix(".json").write_text(text)
    with pytest.raises(ToolchainError, match="delete it"):
        restore(stub.conan, kept, LLVM)


def test_an_archive_without_its_note_is_not_taken(stub: Stub, kept: Path, saved: Path):
    note = saved.with_suffix(".json")
    assert json.loads(note.read_text())["package"] == WANTED
    note.unlink()
    assert not restore(stub.conan, kept, LLVM)
    assert not restore(stub.conan, kept / "none", LLVM)


def test_a_note_without_its_archive_is_not_taken(stub: Stub, kept: Path, saved: Path):
    saved.unlink()
    assert not restore(stub.conan, kept, LLVM)


def test_what_conan_finds_amiss_is_an_error(stub: Stub, kept: Path, saved: Path):
    assert saved.exists()
    stub.does('sys.exit("check-integrity" in arguments)')
    with pytest.raises(ToolFailed, match="check-integrity"):
        restore(stub.conan, kept, LLVM)


@pytest.mark.parametrize("code", [SAVES + "sys.exit(1)", "sys.exit(1)"])
def test_a_save_that_fails_leaves_nothing(stub: Stub, kept: Path, code: str):
    stub.does(code)
    with pytest.raises(ToolFailed):
        save(stub.conan, kept, LLVM)
    assert list(kept.iterdir()) == []


def test_a_save_that_is_interrupted_leaves_nothing_that_is_taken(
    stub: Stub, kept: Path, monkeypatch: pytest.MonkeyPatch
):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    stub.does(SAVES)
    with monkeypatch.context() as during:
        during.setattr("toolchain.native.binary_cache.os.replace", interrupt)  # between the archive and its note
        with pytest.raises(KeyboardInterrupt):
            save(stub.conan, kept, LLVM)
    assert not restore(stub.conan, kept, LLVM)
    save(stub.conan, kept, LLVM)
    assert restore(stub.conan, kept, LLVM)
