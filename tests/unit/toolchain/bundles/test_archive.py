from __future__ import annotations

import io
import lzma
import os
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from toolchain.bundles import archive
from toolchain.bundles.bundle import MANIFEST, Bundle, Compiled, write
from toolchain.contract.artifact import ptx, tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.errors import BundleError, UsageError

TOOLS = {"tileiras": {"version": "13.5.37", "sha256": "0" * 64}}
Members = list[tuple[tarfile.TarInfo, bytes]]


def compiled(symbol: str) -> Compiled:
    name = symbol.encode()
    cubins = {"sm_90": b"sm_90 " + name, "sm_80": b"sm_80 " + name}
    return Compiled(EntrySpec(symbol, "gelu", "py", "f32"), tile_ir(b"bytecode of " + name, "13.3"), cubins, "f" * 64)


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return write(tmp_path / "bundle", [compiled("gelu_64_f32"), compiled("gelu_f32")], TOOLS)


@pytest.fixture
def packed(bundle: Bundle, tmp_path: Path) -> Path:
    archive.pack(bundle.root, tmp_path / "b.tar.xz")
    return tmp_path / "b.tar.xz"


def members(packed: Path) -> Members:
    with tarfile.open(packed) as opened:
        return [(m, (file.read() if (file := opened.extractfile(m)) else b"")) for m in opened]


def rewritten(packed: Path, change: Callable[[Members], Members]) -> Path:
    """The archive with other members."""
    rows = change(members(packed))
    with tarfile.open(packed, "w:xz", format=tarfile.USTAR_FORMAT) as opened:
        for member, data in rows:
            opened.addfile(member, io.BytesIO(data))
    return packed


def member(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, to: str = "") -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, to, len(data)
    return made, data


def test_what_is_packed_is_unpacked(bundle: Bundle, packed: Path, tmp_path: Path) -> None:
    got = archive.unpack(packed, tmp_path / "deep" / "folder" / "got")
    assert (got.root / MANIFEST).read_bytes() == (bundle.root / MANIFEST).read_bytes()
    assert [e.spec for e in got.entries] == [e.spec for e in bundle.entries]
    assert got.read(got.entries[1].cubins["sm_80"]) == b"sm_80 gelu_f32"
    assert archive.unlisted(got) == []
    assert got.entries[0].fingerprint == "f" * 64


def test_of_a_link_what_it_leads_to_is_unpacked_into(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "large-disk")
    for _ in range(2):
        archive.unpack(packed, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "large-disk" / MANIFEST).is_file()


def test_the_archive_says_nothing_of_where_when_and_by_whom(bundle: Bundle, packed: Path, tmp_path: Path) -> None:
    first = packed.read_bytes()
    umask = os.umask(0o077)
    try:
        again = write(tmp_path / "elsewhere" / "c", [compiled("gelu_64_f32"), compiled("gelu_f32")], TOOLS)
        for path in sorted(again.root.rglob("*"), reverse=True):
            os.utime(path, (1, 1))
        archive.pack(again.root, tmp_path / "c.tar.xz")
    finally:
        os.umask(umask)
    assert (tmp_path / "c.tar.xz").read_bytes() == first
    assert (tmp_path / "c.tar.xz").stat().st_mode & 0o777 == 0o644
    heads = [m for m, _ in members(packed)]
    assert [m.name for m in heads] == [MANIFEST, *sorted(archive.listed(bundle))]
    assert {(m.mode, m.uid, m.gid, m.uname, m.gname, m.mtime) for m in heads} == {(0o644, 0, 0, "", "", 0)}


def test_a_damaged_bundle_is_not_packed(bundle: Bundle, tmp_path: Path) -> None:
    changed, gone = bundle.entries[0].cubins["sm_90"].path, bundle.entries[1].bytecode.path
    changed.write_bytes(b"other")
    gone.unlink()
    with pytest.raises(BundleError) as caught:
        archive.pack(bundle.root, tmp_path / "b.tar.xz")
    assert f"{changed} is damaged" in str(caught.value) and f"lacks {gone}" in str(caught.value)
    assert not (tmp_path / "b.tar.xz").exists()


@pytest.mark.parametrize("link", [False, True])
def test_what_the_manifest_does_not_list_is_not_packed(bundle: Bundle, tmp_path: Path, link: bool) -> None:
    extra = bundle.root / "files" / "notes.txt"
    if link:
        extra.symlink_to("/etc")
    else:
        extra.touch()
    with pytest.raises(BundleError, match=r"does not list:\s+files/notes\.txt"):
        archive.pack(bundle.root, tmp_path / "b.tar.xz")


def test_a_write_that_fails_leaves_what_was_there(
    bundle: Bundle, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = packed.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "addfile", full)
    with pytest.raises(UsageError, match="cannot be written: No space left"):
        archive.pack(bundle.root, packed)
    assert packed.read_bytes() == before
    assert {p.name for p in tmp_path.iterdir()} == {"bundle", "b.tar.xz"}


def test_what_is_no_plain_file_is_left_alone(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", Path("/dev/null")):
        mode = path.stat().st_mode
        with pytest.raises(UsageError, match=f"{path} cannot be written"):
            archive.pack(bundle.root, path)
        assert path.stat().st_mode == mode


def replaced_content(rows: Members) -> Members:
    return [*rows[:-1], member(rows[-1][0].name, b"forged")]


BAD: dict[str, tuple[Callable[[Members], Members], str]] = {
    "absolute": (lambda rows: [*rows, member("/etc/cron.d/x", b"x")], r"'/etc/cron\.d/x' is not in its manifest"),
    "outside": (lambda rows: [*rows, member("files/../../x", b"x")], "is not in its manifest"),
    "unlisted": (lambda rows: [*rows, member("files/x", b"x")], "'files/x' is not in its manifest"),
    "twice": (lambda rows: [*rows, rows[-1]], "in the archive twice"),
    "manifest twice": (lambda rows: [*rows, rows[0]], "in the archive twice"),
    "symbolic link": (lambda rows: [*rows[:-1], member(rows[-1][0].name, b"", tarfile.SYMTYPE, "/etc")], "links"),
    "hard link": (lambda rows: [*rows[:-1], member(rows[-1][0].name, b"", tarfile.LNKTYPE, MANIFEST)], "links"),
    "folder": (lambda rows: [*rows, member("files", b"", tarfile.DIRTYPE)], "links and folders"),
    "other content": (replaced_content, r"files/\w{64}\.\w+: sha256 \w{64}, the manifest says"),
    "missing": (lambda rows: rows[:-1], r"files/\w{64}\.\w+: missing"),
    "no manifest": (lambda rows: rows[1:], "not an archive of a bundle"),
    "manifest damaged": (lambda rows: [member(MANIFEST, b"{"), *rows[1:]], r"b\.tar\.xz/manifest\.json is damaged"),
    "empty": (lambda _: [], "is empty"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_archive_leaves_nothing(packed: Path, tmp_path: Path, name: str) -> None:
    change, said = BAD[name]
    rewritten(packed, change)
    with pytest.raises(BundleError, match=said):
        archive.unpack(packed, tmp_path / "got")
    assert {p.name for p in tmp_path.iterdir()} == {"bundle", "b.tar.xz"}


def test_a_bad_archive_leaves_the_older_bundle(bundle: Bundle, packed: Path, tmp_path: Path) -> None:
    old = write(tmp_path / "got", [compiled("old_f32")], TOOLS)
    with pytest.raises(BundleError):
        archive.unpack(rewritten(packed, replaced_content), old.root)
    assert [e.spec.symbol for e in Bundle.load(old.root).entries] == ["old_f32"]
    archive.pack(bundle.root, packed)
    assert archive.unpack(packed, old.root).entries[0].spec.symbol == "gelu_64_f32"


def test_every_damaged_byte_is_found(packed: Path, tmp_path: Path) -> None:
    whole = packed.read_bytes()
    for at in range(0, len(whole), 23):
        packed.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(BundleError):
            archive.unpack(packed, tmp_path / "got")
    for length in range(0, len(whole), 50):
        packed.write_bytes(whole[:length])
        with pytest.raises(BundleError):
            archive.unpack(packed, tmp_path / "got")


def test_more_after_the_end(packed: Path, tmp_path: Path) -> None:
    raw = lzma.decompress(packed.read_bytes())
    packed.write_bytes(lzma.compress(raw + b"more"))
    with pytest.raises(BundleError, match="data after the end"):
        archive.unpack(packed, tmp_path / "got")


@pytest.mark.parametrize(("limit", "name"), [("MANIFEST_LIMIT", MANIFEST), ("FILE_LIMIT", "files/")])
def test_a_file_that_is_too_big(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, name: str
) -> None:
    monkeypatch.setattr(archive, limit, 5)
    with pytest.raises(BundleError, match=f"{name}.*at most 5"):
        archive.unpack(packed, tmp_path / "got")


def test_only_a_bundle_is_replaced(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    with pytest.raises(UsageError, match="not overwritten"):
        archive.unpack(packed, tmp_path / "precious")
    with pytest.raises(UsageError, match="cannot be unpacked"):
        archive.unpack(tmp_path / "none.tar.xz", tmp_path / "got")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_SPARSE])
def test_a_header_of_another_kind_is_refused_before_its_content_is_read(
    packed: Path, tmp_path: Path, kind: bytes
) -> None:
    size = 64 << 20  # of zeros, which are some kilobytes in the archive
    made = tarfile.TarInfo("x")
    made.type, made.size = kind, size
    with lzma.open(packed, "wb", preset=0) as file:
        file.write(made.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(BundleError, match="'x' is not a plain file"):
            archive.unpack(packed, tmp_path / "got")
        assert tracemalloc.get_traced_memory()[1] < size / 2
    finally:
        tracemalloc.stop()


def test_a_negative_size_reads_nothing(packed: Path, tmp_path: Path) -> None:
    made = tarfile.TarInfo(MANIFEST)
    made.size = -600
    packed.write_bytes(lzma.compress(made.tobuf(tarfile.GNU_FORMAT) + bytes(1024)))
    with pytest.raises(BundleError, match="has -600 bytes"):
        archive.unpack(packed, tmp_path / "got")


def test_attributes_that_tarfile_cannot_read_are_an_error_of_ours(packed: Path, tmp_path: Path) -> None:
    made = tarfile.TarInfo(MANIFEST)
    made.pax_headers = {"GNU.sparse.map": "a,b"}
    packed.write_bytes(lzma.compress(made.tobuf(tarfile.PAX_FORMAT) + bytes(1024)))
    with pytest.raises(BundleError, match="is not a plain file"):
        archive.unpack(packed, tmp_path / "got")


def test_the_ir_beside_ptx_is_packed_too(tmp_path: Path) -> None:
    code = ptx(".target sm_80", block=(32, 1, 1), ir="module {}")
    made = write(tmp_path / "b", [Compiled(EntrySpec("gelu_f32", "gelu", "cute", "f32"), code, {})], TOOLS)
    assert [ref.path.suffix for ref in made.entries[0].files] == [".ptx", ".mlir"] and archive.unlisted(made) == []
    archive.pack(made.root, tmp_path / "b.tar.xz")
    (entry,) = archive.unpack(tmp_path / "b.tar.xz", tmp_path / "got").entries
    assert entry.ir is not None and entry.ir.path.read_bytes() == b"module {}"
