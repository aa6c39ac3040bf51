from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from toolchain.bundles.bundle import Bundle, Compiled, write
from toolchain.contract.artifact import ptx, tile_ir
from toolchain.contract.entries import DEFAULT, Tables, committed
from toolchain.contract.entry import EntrySpec
from toolchain.contract.fastest import Pick
from toolchain.errors import BundleError, LaunchError, NotInterpretable, UsageError

TOOLS = {"tileiras": {"version": "13.5.37", "sha256": "0" * 64}}


def compiled(
    symbol: str = "gelu_f32", source: str = "py", mark: bytes = b"", op: str = "gelu", **spec: object
) -> Compiled:
    what = EntrySpec(symbol, op, source, "f32", grid=("M", "1", "1"), **spec)  # type: ignore[arg-type]
    name = f"{source}/{symbol}".encode() + mark
    return Compiled(
        what, tile_ir(b"bytecode of " + name, "13.3"), {"sm_90": b"sm_90 " + name, "sm_80": b"sm_80 " + name}
    )


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    fast = {
        "constants": {"BM": 64, "BK": 8},
        "aligned": ("x",),
        "where": ("N % 64 == 0",),
        "hints": {"sm_90": {"occupancy": 2}},
    }
    return write(tmp_path / "b", [compiled("gelu_64_f32", **fast), compiled(), compiled(source="mlir")], TOOLS)


def test_what_is_written_is_loaded(bundle: Bundle) -> None:
    assert Bundle.load(str(bundle.root)).entries == bundle.entries
    assert [e.spec.symbol for e in bundle.entries] == ["gelu_64_f32", "gelu_f32", "gelu_f32"]
    assert bundle.entries[0].spec.hints == {"sm_90": {"occupancy": 2}}
    assert list(bundle.entries[0].spec.constants) == ["BM", "BK"]  # by position is how a kernel takes them
    assert bundle.sources == ("py", "mlir")
    assert bundle.targets == ("sm_90", "sm_80")  # in the order of the compile, not of the alphabet
    assert bundle.tools == TOOLS
    entry = bundle.find("mlir", "gelu_f32")
    assert bundle.read(entry.bytecode) == b"bytecode of mlir/gelu_f32"
    assert bundle.read(entry.cubins["sm_80"]) == b"sm_80 mlir/gelu_f32"
    with pytest.raises(BundleError, match="gelu_f16"):
        bundle.find("mlir", "gelu_f16")


def test_it_says_which_source_is_the_fastest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only for targets of whose own table it has entries, and only of sources that it has entries of."""
    rows = [Pick("gelu", name, ("f32",), source, where, {}) for name, source, where in (
        ("few", "cute", ("M <= 8",)), ("many", "mlir", ("M > 1024",)), ("all", "py", ()),
    )]  # fmt: skip
    monkeypatch.setattr(Tables, "picks", {"sm_90": rows, "sm_80": rows})
    own = [compiled(targets=("sm_90",)), compiled(source="mlir")]
    found = write(tmp_path / "b", own, TOOLS)
    assert found.picks == {"sm_90": tuple(rows[1:])}

    def fastest(rows: int, target: str | None, among: tuple[str, ...] = ("cute", "mlir", "py")) -> str:
        return found.fastest(among, "gelu", "f32", {"M": rows, "N": 8}, target)

    assert [fastest(rows, "sm_90") for rows in (4, 2000)] == ["py", "mlir"]
    assert [fastest(4, target) for target in ("sm_80", None)] == ["mlir", "mlir"], "the first that there is"
    assert found.fastest(("cute", "mlir", "py"), "gelu", "bf16", {}, None) == "mlir", "also of an op that none has"
    alone = write(tmp_path / "d", [compiled(), compiled("softmax_f32", source="mlir", op="softmax")], TOOLS)
    assert alone.fastest(("mlir", "py"), "gelu", "f32", {"M": 4, "N": 8}, None) == "py", "the first that has the op"
    with pytest.raises(BundleError, match="no entries of cute, other"):
        fastest(4, None, ("cute", "other"))
    assert write(tmp_path / "c", [compiled()], TOOLS).picks == {}
    damaged = json.loads((tmp_path / "b" / "manifest.json").read_text())
    damaged["fastest"]["sm_90"][0]["op"] = "other"
    (tmp_path / "b" / "manifest.json").write_text(json.dumps(damaged))
    with pytest.raises(BundleError, match="no op other"):
        Bundle.load(tmp_path / "b")


@pytest.mark.parametrize(("version", "waits"), [("13.3", False), ("13.4", True), ("13.10", True), ("14.0", True)])
def test_kernels_wait_by_themselves_from_a_version_on(tmp_path: Path, version: str, *, waits: bool) -> None:
    write(tmp_path / "b", [replace(compiled(), artifact=tile_ir(b"code", version))], TOOLS)
    assert Bundle.load(tmp_path / "b").entries[0].form.waits is waits


def test_the_first_entry_that_fits_is_selected(bundle: Bundle) -> None:
    def chosen(n: int, misaligned: frozenset[str] = frozenset()) -> str:
        return bundle.select("py", "gelu", "f32", {"M": 4, "N": n}, misaligned).spec.symbol

    assert chosen(128) == "gelu_64_f32"
    assert chosen(100) == "gelu_f32"
    assert chosen(128, frozenset({"x"})) == "gelu_f32"
    assert chosen(128, frozenset({"out"})) == "gelu_64_f32"


def test_an_entry_for_a_target_is_selected_there_alone(tmp_path: Path) -> None:
    tuned = compiled("gelu_sm_90_f32", targets=("sm_90",), where=("M > 1",))
    both = write(tmp_path / "b", [tuned, compiled()], TOOLS)

    def chosen(target: str | None, m: int = 4) -> str:
        return both.select("py", "gelu", "f32", {"M": m, "N": 4}, target=target).spec.symbol

    assert chosen("sm_90") == chosen(None) == "gelu_sm_90_f32"
    assert chosen("sm_80") == chosen("sm_90", m=1) == "gelu_f32"
    assert both.entries[0].spec.targets == ("sm_90",)
    assert [e.spec.symbol for e in both.entries_of("py", "gelu", "f32")] == ["gelu_sm_90_f32", "gelu_f32"]
    assert both.entries_of("mlir", "gelu", "f32") == ()
    alone = write(tmp_path / "a", [tuned, compiled("gelu_64_f32", multiples={"N": 64})], TOOLS)
    with pytest.raises(LaunchError, match=r"gelu_sm_90_f32: is for sm_90\s+gelu_64_f32: N must be a multiple of 64"):
        alone.select("py", "gelu", "f32", {"M": 4, "N": 4}, target="sm_80")


def test_a_bundle_carries_the_policies_of_the_tables_that_its_entries_are_from(tmp_path: Path) -> None:
    policies = committed().policies
    portable = write(tmp_path / "a", [compiled()], TOOLS)
    assert portable.policies == {DEFAULT: policies[DEFAULT]}, "a model must not plan for entries that are not there"
    assert portable.policy("sm_90") == portable.policy(None) == policies[DEFAULT]
    both = write(tmp_path / "b", [compiled("gelu_sm_90_f32", targets=("sm_90",)), compiled()], TOOLS)
    assert both.policy("sm_90") == both.policy(None) == policies["sm_90"]
    assert both.policy("sm_80") == policies[DEFAULT]


@pytest.mark.parametrize("name", ["policies", DEFAULT])
def test_a_manifest_without_policies_is_damaged(bundle: Bundle, name: str) -> None:
    path = bundle.root / "manifest.json"
    manifest = json.loads(path.read_text())
    del (manifest if name == "policies" else manifest["policies"])[name]
    path.write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match=f"is damaged: KeyError: '.*{name}'"):
        Bundle.load(bundle.root)


def test_nothing_to_select(bundle: Bundle, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"py/gelu\[f16\].*py/gelu\[f32\], mlir/gelu\[f32\]"):
        bundle.select("py", "gelu", "f16", {"M": 4, "N": 4})
    strict = write(tmp_path / "s", [compiled("a", where=("N == 1",)), compiled("b", aligned=("x",))], TOOLS)
    with pytest.raises(LaunchError, match=r"M=4, N=4:\s+a: N == 1 does not hold\s+b: x must be aligned"):
        strict.select("py", "gelu", "f32", {"M": 4, "N": 4}, frozenset({"x"}))


def test_a_damaged_or_missing_file_is_named(bundle: Bundle) -> None:
    file = bundle.entries[0].bytecode
    file.path.write_bytes(b"bytecode of py/gelu_65_f32")
    with pytest.raises(BundleError, match=f"{file.path} is damaged.*{file.sha256}"):
        bundle.read(file)
    file.path.unlink()
    with pytest.raises(BundleError, match=f"lacks {file.path}"):
        bundle.read(file)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"format": 1}', '{"format": 4}', '{"format": 4, "tools": {}, "entries": [{}]}',
     '{"format": 4, "tools": [], "entries": []}', '{"format": 4, "tools": {}, "entries": 3}',
     '{"format": 4, "tools": {"ptxas": {"version": "1"}}, "entries": []}',
     '{"format": 4, "tools": {"ptxas": {"version": "1", "sha256": null}}, "entries": []}', "[" * 100_000],
    ids=lambda text: text[:60],
)  # fmt: skip
def test_a_bad_manifest(bundle: Bundle, text: str) -> None:
    (bundle.root / "manifest.json").write_text(text)
    with pytest.raises(BundleError, match=r"manifest\.json"):
        Bundle.load(bundle.root)


@pytest.mark.parametrize(("name", "value"), [("symbol", ["x"]), ("source", 3), ("version", "x"), ("version", 13.4)])
def test_an_entry_of_a_bad_manifest(bundle: Bundle, name: str, value: object) -> None:
    manifest = json.loads((bundle.root / "manifest.json").read_text())
    row = manifest["entries"][0]
    row["form" if name in row["form"] else "spec"][name] = value
    (bundle.root / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(
        BundleError, match=r"manifest\.json is damaged: .*is not (the name of an entry|a version)|expected string"
    ):
        Bundle.load(bundle.root)


def test_a_manifest_cannot_name_a_file_elsewhere(bundle: Bundle) -> None:
    manifest = json.loads((bundle.root / "manifest.json").read_text())
    manifest["entries"][0]["code"] = "../../../etc/passwd"
    (bundle.root / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match="not a sha256"):
        Bundle.load(bundle.root)


def test_a_bundle_of_an_op_that_is_no_more_is_to_be_compiled_again(bundle: Bundle) -> None:
    manifest = json.loads((bundle.root / "manifest.json").read_text())
    manifest["entries"][0]["spec"]["op"] = "gone"
    (bundle.root / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match=r"(?s)another version: .*no op 'gone'.*next: compile it again"):
        Bundle.load(bundle.root)


def test_a_bundle_of_an_op_that_took_other_parameters_is_to_be_compiled_again(bundle: Bundle) -> None:
    file = bundle.root / "manifest.json"
    manifest = json.loads(file.read_text())
    assert manifest["ops"] == {"gelu": ["input x: T[M, N]", "output out: T[M, N]"]}
    for other in (manifest["ops"]["gelu"][::-1], ["pdl_reads input x: T[M, N]", "output out: T[M, N]"], []):
        file.write_text(json.dumps({**manifest, "ops": {"gelu": other}}))
        with pytest.raises(BundleError, match=r"(?s)another version: gelu had other parameters.*next: compile it"):
            Bundle.load(bundle.root)
    file.write_text(json.dumps({**manifest, "ops": ["gelu"]}))
    with pytest.raises(BundleError, match="damaged: its ops are not a table"):
        Bundle.load(bundle.root)


def test_a_bundle_of_another_commit_is_launched_by_the_policies_of_this_one(bundle: Bundle) -> None:
    """Its policy may lack what this version asks for. Of ops that had other parameters it has no entries."""
    file = bundle.root / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["policies"] = {"default": {"of": "another version"}}
    file.write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match="another version"):
        Bundle.load(bundle.root)
    found = Bundle.load(bundle.root, bundle.policies)
    assert (found.entries, found.policies) == (bundle.entries, bundle.policies)
    file.write_text(json.dumps({**manifest, "ops": {"gelu": manifest["ops"]["gelu"][::-1]}}))
    assert Bundle.load(bundle.root, bundle.policies).entries == ()


@pytest.mark.parametrize("ops", [None, {}, {"softmax": []}])
def test_a_manifest_that_does_not_say_what_its_ops_take_is_refused(bundle: Bundle, ops: object) -> None:
    file = bundle.root / "manifest.json"
    manifest = json.loads(file.read_text())
    del manifest["ops"]
    if ops is not None:
        manifest["ops"] = ops
    file.write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match=r"damaged: (its ops are not a table|it has no parameters of gelu)"):
        Bundle.load(bundle.root)


def test_ptx_is_stored_with_its_block_and_shared_memory(tmp_path: Path) -> None:
    code = ptx(".target sm_80", block=(128, 1, 1), shared_bytes=512)
    made = write(tmp_path / "b", [replace(compiled(), artifact=code)], TOOLS)
    (entry,) = made.entries
    assert (entry.form, entry.code.path.suffix, made.read(entry.code)) == (code.form, ".ptx", b".target sm_80")
    assert not entry.interpretable
    with pytest.raises(NotInterpretable, match=r"py/gelu_f32 is ptx, without Tile IR bytecode.*cannot run it"):
        _ = entry.bytecode
    assert write(made.root, [compiled()], TOOLS).entries[0].interpretable  # a bundle with PTX is one too: replaced


def test_the_ir_of_ptx_is_stored_beside_it(tmp_path: Path) -> None:
    code = ptx(".target sm_80", block=(128, 1, 1), ir="module {}")
    made = write(tmp_path / "b", [replace(compiled(), artifact=code)], TOOLS)
    (entry,) = made.entries
    assert entry.ir is not None and entry.ir.path.suffix == ".mlir" and made.read(entry.ir) == b"module {}"
    assert not entry.interpretable  # it is no Tile IR
    assert write(made.root, [compiled()], TOOLS).entries[0].ir is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("kind", "sass"), ("convention", "bare pointers"), ("block", [2048, 1, 1]), ("block", [1, 1]),
     ("block", [1, 1, 2.0]), ("shared_bytes", -1), ("shared_bytes", 10**6), ("version", "")],
)  # fmt: skip
def test_a_form_that_cannot_be_launched_is_refused(bundle: Bundle, field: str, value: object) -> None:
    file = bundle.root / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["entries"][0]["form"][field] = value
    file.write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match=r"manifest\.json (is damaged|was compiled by another version)"):
        Bundle.load(bundle.root)


def test_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=f"no bundle in {tmp_path}"):
        Bundle.load(tmp_path)


def test_of_a_link_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    large, link = tmp_path / "large-disk" / "bundle", tmp_path / "bundle"
    link.symlink_to(large)
    for symbol in ("one_f32", "two_f32"):
        write(link, [compiled(symbol)], TOOLS)
        (large / "files" / ".nfs0001").touch()  # what a file system leaves there makes it no less a bundle
        assert link.is_symlink()
        assert [e.spec.symbol for e in Bundle.load(large).entries] == [symbol]


def test_writing_replaces_a_bundle_and_nothing_else(bundle: Bundle, tmp_path: Path) -> None:
    again = write(bundle.root, [compiled("only_f32")], TOOLS)
    assert [e.spec.symbol for e in again.entries] == ["only_f32"]
    assert len(list((bundle.root / "files").iterdir())) == 3
    other = tmp_path / "precious"
    other.mkdir()
    (other / "file").touch()
    for taken in (other, other / "file"):
        with pytest.raises(UsageError, match="not overwritten"):
            write(taken, [compiled()], TOOLS)
    (other / "manifest.json").write_text("{}")  # as a web application has, a browser's extension and our own toolchain
    with pytest.raises(UsageError, match="not overwritten"):
        write(other, [compiled()], TOOLS)
    (other / "files").mkdir()
    (other / "files" / "photo").touch()
    with pytest.raises(UsageError, match="not overwritten"):
        write(other, [compiled()], TOOLS)
    assert (other / "file").exists()
    (again.root / "manifest.json").write_text("{")  # a damaged one is to be compiled again
    assert len(write(again.root, [compiled(), compiled("other_f32")], TOOLS).entries) == 2
    assert {p.name for p in tmp_path.iterdir()} == {"b", "precious"}


@pytest.mark.parametrize(
    ("error", "raised", "said"),
    [
        (OSError(28, "No space left on device"), UsageError, "b cannot be written: No space left on device$"),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
    ],
)
def test_a_write_that_does_not_finish_leaves_the_older_bundle(
    bundle: Bundle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    raised: type[BaseException],
    said: str,
) -> None:
    rename = Path.rename

    def fails(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(raised, match=said):
        write(bundle.root, [compiled("only_f32")], TOOLS)
    assert Bundle.load(bundle.root).entries == bundle.entries
    assert bundle.read(bundle.entries[0].bytecode)
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_the_same_entries_give_the_same_bytes(tmp_path: Path) -> None:
    one, two = (write(tmp_path / name, [compiled()], TOOLS) for name in ("one", "two"))
    assert (one.root / "manifest.json").read_bytes() == (two.root / "manifest.json").read_bytes()


def test_two_entries_of_one_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="py/gelu_f32"):
        write(tmp_path / "b", [compiled(), compiled()], TOOLS)


def test_two_writers_at_once_leave_one_whole_bundle(tmp_path: Path) -> None:
    errors: list[Exception] = []

    def writer(mark: bytes) -> None:
        try:
            for _ in range(20):
                write(tmp_path / "b", [compiled(mark=mark)], TOOLS)
        except BundleError:
            pass  # its own load met the other's replacement: the bundle itself is judged below
        except (OSError, UsageError) as error:
            errors.append(error)

    threads = [threading.Thread(target=writer, args=(mark,)) for mark in (b"1", b"2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    left = Bundle.load(tmp_path / "b")
    assert left.read(left.entries[0].cubins["sm_90"]) in (b"sm_90 py/gelu_f321", b"sm_90 py/gelu_f322")
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
