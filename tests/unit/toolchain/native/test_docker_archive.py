from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from toolchain.native.docker_archive import tag_of, write
from toolchain.pinned.pins import file_sha256

EPOCH = 1767225600  # 2026-01-01


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    """A root file system; its content does not matter for the archive."""
    path = tmp_path / "layer.tar"
    path.write_bytes(b"a layer" * 2000)
    return path


def test_the_same_bytes_twice(layer: Path, tmp_path: Path):
    first = write(layer, tmp_path / "a.tar", tag="a:1", epoch=EPOCH, labels={"x": "1", "y": "2"})
    elsewhere = tmp_path / "other" / "name.tar"
    elsewhere.parent.mkdir()
    layer = layer.rename(elsewhere)
    layer.touch()
    again = write(layer, tmp_path / "b.tar", tag="a:1", epoch=EPOCH, labels={"y": "2", "x": "1"})
    assert first == again
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_the_id_is_of_all_that_the_image_is(layer: Path, tmp_path: Path):
    def made(epoch: int = EPOCH, label: str = "1", tag: str = "a:1") -> str:
        return write(layer, tmp_path / "i.tar", tag=tag, epoch=epoch, labels={"x": label})

    first = made()
    assert first == made(tag="b:1")  # a name, which may be given to any image
    assert len({first, made(epoch=EPOCH + 1), made(label="2")}) == 3
    layer.write_bytes(b"another layer")
    assert made() != first


def test_the_archive_is_what_its_manifest_says(layer: Path, tmp_path: Path):
    digest = write(layer, tmp_path / "i.tar", tag="name:suite", epoch=EPOCH, labels={"x": "1"})
    with tarfile.open(tmp_path / "i.tar") as tar:
        data = {member.name: file.read() for member in tar if (file := tar.extractfile(member))}
        heads = {(m.mode, m.mtime, m.uid, m.gid, m.uname, m.gname) for m in tar.getmembers()}
    assert heads == {(0o644, 0, 0, 0, "", "")}
    (image,) = json.loads(data.pop("manifest.json"))
    assert image["RepoTags"] == ["name:suite", tag_of(digest)] and tag_of(digest) == f"tilestack:{digest[7:]}"
    config = data.pop(image["Config"])
    assert digest == f"sha256:{hashlib.sha256(config).hexdigest()}"
    assert image["Layers"] == list(data)
    assert data[image["Layers"][0]] == layer.read_bytes()
    said = json.loads(config)
    assert said["rootfs"] == {"type": "layers", "diff_ids": [f"sha256:{file_sha256(layer)}"]}
    assert (said["os"], said["created"]) == ("linux", "2026-01-01T00:00:00Z")
    assert said["config"]["Labels"] == {"x": "1"}


@pytest.mark.parametrize(("machine", "architecture"), [("x86_64", "amd64"), ("aarch64", "arm64")])
def test_the_image_is_of_this_machines_kind(
    layer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, architecture: str
):
    monkeypatch.setattr("platform.machine", lambda: machine)
    digest = write(layer, tmp_path / "i.tar", tag="a:1", epoch=EPOCH, labels={})
    with tarfile.open(tmp_path / "i.tar") as tar:
        file = tar.extractfile(f"{digest.removeprefix('sha256:')}.json")
        assert file is not None
        assert json.loads(file.read())["architecture"] == architecture
