from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from pathlib import Path

import pytest
import zstandard

from toolchain.errors import UsageError
from toolchain.provenance.archives import DEEPEST, members

from .conftest import Write, image, tar


def zipped(name: str, data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return buffer.getvalue()


def contents(path: Path) -> dict[str, bytes]:
    """The last content seen at each path: of a compressed file, the unpacked one."""
    return {member.path: member.content.read() if member.content else b"" for member in members(path)}


@pytest.mark.parametrize(
    "pack",
    [bytes, gzip.compress, lzma.compress, bz2.compress, zstandard.compress,
     lambda data: zstandard.compress(data[:700]) + zstandard.compress(data[700:]),
     lambda data: zstandard.ZstdCompressor(write_content_size=False).compress(data)],
)  # fmt: skip
def test_a_tar_however_compressed(file: Write, pack: object) -> None:
    path = file("a", pack(tar({"./x/y": b"data", "/z": b""})))  # type: ignore[operator]
    assert {name: data for name, data in contents(path).items() if name} == {"x/y": b"data", "z": b""}


def test_archives_in_archives(file: Write) -> None:
    inner = gzip.compress(tar({"bin/tool": b"tool"}))
    path = file("i.tar", image(tar({"root.whl": zipped("p/m.py", b"code"), "t.tgz": inner})))
    found = contents(path)
    assert found["0/layer.tar!root.whl!p/m.py"] == b"code"
    assert found["0/layer.tar!t.tgz!bin/tool"] == b"tool"
    assert found["config.json"] == b"{}"


def test_a_folder_with_links(tmp_path: Path) -> None:
    (tmp_path / "d/e").mkdir(parents=True)
    (tmp_path / "d/e/f").write_bytes(b"f")
    (tmp_path / "d/to").symlink_to("e/f")
    (tmp_path / "d/away").symlink_to("/nowhere")
    assert contents(tmp_path / "d") == {"e/f": b"f", "to": b"f", "away": b""}


@pytest.mark.usefixtures("closed")
def test_a_folder_with_another_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{tmp_path}/closed cannot be read: Permission denied"):
        contents(tmp_path)


def test_a_link_in_a_tar_is_a_name(file: Write) -> None:
    import tarfile

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("bin/ptxas")
        info.type, info.linkname = tarfile.SYMTYPE, "/elsewhere"
        archive.addfile(info)
    assert [(m.name, m.content) for m in members(file("l.tar", buffer.getvalue()))] == [("bin/ptxas", None)]


def damaged() -> dict[str, bytes]:
    whole = tar({"a": b"a" * 3000, "b": b"b" * 3000})
    return {
        "cut in a file": whole[:2000],
        "cut in the last file": whole[: 512 + 3072 + 512 + 2000],
        "a header overwritten": whole[: 512 + 3072] + b"x" * 512 + whole[512 + 3072 + 512 :],
        "cut gzip": gzip.compress(whole)[:-20],
        "damaged gzip": gzip.compress(whole)[:40] + b"\xff" * 20 + gzip.compress(whole)[60:],
        "cut xz": lzma.compress(whole)[:-20],
        "cut zst": zstandard.compress(whole)[:-20],
        "cut zip": zipped("a", whole)[:-30],
    }


@pytest.mark.parametrize("name", sorted(damaged()))
def test_a_damaged_archive_is_an_error_and_within_another_a_problem(file: Write, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be read to its end"):
        contents(file("broken", damaged()[name]))
    problems = [m for m in members(file("outer.tar", tar({"in/broken": damaged()[name]}))) if m.problem]
    assert [problem.path.partition("!")[0] for problem in problems] == ["in/broken"]


def test_a_zip_with_a_password(file: Write) -> None:
    data = bytearray(zipped("a", b"secret"))
    data[6] |= 1  # the flag for it, in the file's header and in the directory
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(UsageError, match="encrypted"):
        contents(file("a.zip", bytes(data)))


def test_too_deep(file: Write) -> None:
    data = b"x"
    for _ in range(DEEPEST + 3):
        data = tar({"t": data})
    assert [m for m in members(file("deep.tar", data)) if m.problem]


@pytest.mark.parametrize("data", [b"", b"hello", b"PK"])
def test_no_archive(file: Write, tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UsageError, match=r"not an archive of a known format(.|\n)*wheel"):
        contents(file("a.whl", data))
    with pytest.raises(UsageError, match="No such file"):
        contents(tmp_path / "none.whl")


def test_a_readers_own_error_is_not_taken_for_damage(file: Write) -> None:
    path = file("a.tar", gzip.compress(tar({"a": b"a"})))

    def read() -> None:
        for member in members(path):
            if member.name == "a":
                raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        read()
