"""The packages of an image, according to the lock, apt's preferences and dpkg's status. No image is made here."""

from __future__ import annotations

import io
import re
import shutil
import tarfile
import tomllib
from pathlib import Path

import pytest

from toolchain.errors import ToolchainError, UsageError
from toolchain.native import images as module
from toolchain.native.images import BuiltImage, Image, Package, compare, image, images, installed, make, save, upstream
from toolchain.pinned.pins import file_sha256
from toolchain.pinned.stacks import stacks

STATUS = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Source: glibc
Version: 2.41-12
Description: GNU C Library
 Version: of another kind
Conffiles:
 /etc/ld.so.conf.d/x86_64-linux-gnu.conf 0123

Package: bsdutils
Status: install ok installed
Architecture: amd64
Source: util-linux (2.41.5-1)
Version: 1:2.41.5-1

Package: adduser
Status: install ok installed
Architecture: all
Version: 3.152

"""
DEBS = ("libc6_2.41-12_amd64.deb", "bsdutils_1%3a2.41.5-1_amd64.deb", "adduser_3.152_all.deb")


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    """A root file system that only has dpkg's status."""
    with tarfile.open(tmp_path / "layer.tar", "w") as tar:
        member = tarfile.TarInfo("./var/lib/dpkg/status")
        member.size = len(STATUS.encode())
        tar.addfile(member, io.BytesIO(STATUS.encode()))
    return tmp_path / "layer.tar"


@pytest.fixture
def debs(tmp_path: Path) -> Path:
    (tmp_path / "debs").mkdir()
    for name in DEBS:
        (tmp_path / "debs" / name).write_text(name)
    return tmp_path / "debs"


@pytest.mark.parametrize("name", images())
def test_each_image_is_locked(name: str):
    known = image(name)
    assert re.fullmatch("sha256:[0-9a-f]{64}", known.digest)
    assert known.tag == f"tilestack-{name}:{known.suite}"
    locked = {package.name for package in known.locked}
    assert len(locked) == len(known.locked)
    assert set(known.packages) <= locked
    assert all(re.fullmatch("[0-9a-f]{64}", package.sha256) for package in known.locked)


@pytest.mark.parametrize("name", images())
def test_each_image_has_what_the_base_has(name: str):
    base, known = image("base"), image(name)
    assert set(base.packages) <= set(known.packages)
    if known.suite == base.suite:
        assert set(base.locked) <= set(known.locked), "another version: make all images anew"


@pytest.mark.parametrize("name", images())
def test_a_pinned_source_has_a_package_of_its_version_in_the_lock(name: str):
    for source, version in image(name).pinned.items():
        series = source.rpartition("-")[2]
        built = [package.version for package in image(name).locked if package.name == f"llvm-{series}-dev"]
        assert [upstream(one) for one in built] == [version]


@pytest.mark.parametrize("name", stacks().stacks)
def test_the_image_of_each_stack_has_its_system_llvm(name: str):
    stack = stacks().stack(name)
    known = image(f"llvm-{stack.series}")
    assert known.suite == stack.suite
    assert known.pinned[f"llvm-toolchain-{stack.series}"] == f"1:{stack.llvm['system']}"


def test_an_unknown_image():
    with pytest.raises(UsageError, match=r"no image 'basis'(.|\n)*one of base, "):
        image("basis")


def package(name: str, version: str = "1", sha256: str = "a", source: str = "") -> Package:
    return Package(name, version, sha256, (source or name, version))


def wanted(*locked: Package, **pinned: str) -> Image:
    return Image("i", "about", "trixie", ("a",), 0, "", pinned, locked)


def test_preferences_ask_for_what_is_locked_and_for_what_is_pinned():
    text = module._preferences(wanted(package("a", "1:2"), package("b", "3"), src="4", later=""))
    assert text.split("\n\n") == [
        "Package: a\nPin: version 1:2\nPin-Priority: 1002",
        "Package: b\nPin: version 3\nPin-Priority: 1002",
        "Package: src:src\nPin: version 4-*\nPin-Priority: 1001\n",
    ]
    assert module._preferences(wanted(later="")) == ""


def test_drift_is_told_by_package():
    before = wanted(package("same"), package("gone"), package("moved"), package("rebuilt"))
    now = [package("same"), package("moved", "2"), package("rebuilt", sha256="b"), package("new")]
    assert compare(before, now) == (
        "gone: gone",
        "moved: 1 is locked, 2 was had",
        "new: new",
        "rebuilt: 1 is locked, 1 was had",
    )
    assert compare(before, before.locked) == ()
    assert compare(wanted(), now) == ()  # never made before: nothing to compare with


def test_a_pinned_source_may_be_of_another_revision_of_its_packaging():
    """A security update, after which a mirror has no other: an error would stop everybody's build."""
    before = wanted(package("liba", "1:22.1.8-1~deb13u4", source="a"), a="1:22.1.8")
    now = [package("liba", "1:22.1.8-1~deb13u5", source="a")]
    assert compare(before, now) == ("liba: 1:22.1.8-1~deb13u4 is locked, 1:22.1.8-1~deb13u5 was had",)
    with pytest.raises(ToolchainError, match=r"a is pinned to 1:22\.1\.8, but the mirror has 1:22\.1\.9-1"):
        compare(before, [package("liba", "1:22.1.9-1", source="a")])
    assert [upstream(version) for version in ("2", "2-1", "1:2-3-1")] == ["2", "2", "1:2-3"]


@pytest.mark.parametrize("there", ["2", ""])
def test_a_pinned_source_of_another_version_is_an_error(there: str):
    had = [package("liba", there, source="a"), package("b")] if there else [package("b")]
    with pytest.raises(ToolchainError, match=rf"i: a is pinned to 1, but the mirror has {there}\n(.|\n)*i --update"):
        compare(wanted(a="1"), had)
    assert compare(wanted(a="1"), [package("liba", "1", source="a"), package("b", "7")]) == ()
    assert compare(wanted(a=""), had) == ()


def test_what_is_installed_is_read_from_dpkgs_status(layer: Path, debs: Path):
    found = installed(layer, debs)
    assert [str(row).rpartition(" ")[0] for row in found] == ["adduser 3.152", "bsdutils 1:2.41.5-1", "libc6 2.41-12"]
    assert [row.source for row in found] == [("adduser", "3.152"), ("util-linux", "2.41.5-1"), ("glibc", "2.41-12")]
    assert [row.sha256 for row in found] == [file_sha256(debs / name) for name in reversed(DEBS)]


@pytest.mark.parametrize("name", DEBS)
def test_an_installed_package_without_its_deb_is_an_error(layer: Path, debs: Path, name: str):
    (debs / name).unlink()
    with pytest.raises(ToolchainError, match=re.escape(f"{debs / name}: missing, but {name.partition('_')[0]} ")):
        installed(layer, debs)


IMAGES = """\
# A comment with digest = "" in it.
epoch = 1

[images.first]
about = "one"
suite = "trixie"
packages = [
  "a",
]
pinned = { a = "1", b = "1" }
digest = "sha256:1"

[images.first-too]
about = "its name begins as another's"
suite = "sid"
packages = ["a"]
pinned = { a = "1", b = "1" } # Why.
digest = "sha256:1"
# The end.
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """images.toml and packages.lock that may be written."""
    paths = tmp_path / "images.toml", tmp_path / "packages.lock"
    paths[0].write_text(IMAGES)
    monkeypatch.setattr(module, "IMAGES", paths[0])
    monkeypatch.setattr(module, "LOCK", paths[1])
    return paths


@pytest.mark.parametrize("name", ["first", "first-too"])
def test_an_update_writes_one_images_rows(files: tuple[Path, Path], tmp_path: Path, name: str):
    (other,) = {"first", "first-too"} - {name}
    old = (package("a", "1"), package("b", "1"))
    for each in ("first", "first-too"):
        save(each, BuiltImage(tmp_path, "sha256:1", old, ()))
    assert files[0].read_text() == IMAGES  # nothing else has moved
    new = (package("a", "1:2~x-1"), package("b", "3"), package("c", "5"))
    save(name, BuiltImage(tmp_path, "sha256:2", new, ()))
    made = images()[name]
    assert (made.digest, made.pinned, made.packages) == ("sha256:2", {"a": "1:2~x", "b": "3"}, ("a",))
    assert list(map(str, made.locked)) == ["a 1:2~x-1 a", "b 3 a", "c 5 a"]
    stays = images()[other]
    assert (stays.digest, stays.pinned) == ("sha256:1", {"a": "1", "b": "1"})
    assert list(map(str, stays.locked)) == ["a 1 a", "b 1 a"]
    before, after = IMAGES.splitlines(), files[0].read_text().splitlines()
    assert len(before) == len(after)
    assert len([line for line, was in zip(after, before, strict=True) if line != was]) == 2


def test_the_lock_is_as_an_update_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = {"IMAGES": module.IMAGES, "LOCK": module.LOCK}
    for name, path in names.items():
        shutil.copy(path, tmp_path)
        monkeypatch.setattr(module, name, tmp_path / path.name)
    known = image("base")
    save("base", BuiltImage(tmp_path, known.digest, known.locked, ()))
    for path in names.values():
        assert (tmp_path / path.name).read_text() == path.read_text()
    assert list(tomllib.loads(names["LOCK"].read_text())) == list(images())


def test_without_mmdebstrap_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"mmdebstrap is not installed(.|\n)*apt-get install(.|\n)*docker load"):
        make(wanted(), tmp_path / "out/i.tar")
    assert list(tmp_path.iterdir()) == []
