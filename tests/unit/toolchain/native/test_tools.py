"""Running native tools that were built on this machine: here they are shell scripts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from toolchain import doctor
from toolchain.errors import ToolchainError, ToolFailed
from toolchain.native import tools as module
from toolchain.native.build import prefixes
from toolchain.native.tools import MAKE, NativeToolchain, NativeToolsAbsent
from toolchain.pinned.pins import file_sha256

SCRIPTS = {
    "copy": 'cat "$1" > "$2"; echo copied "$1"',
    "fails": "echo printed; echo 'error: bad module' >&2; exit 7",
    "environment": "env",
    "folder": "pwd; ls",
}


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A native toolchain as a build without a container leaves it."""
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", str(tmp_path / "toolchain"))
    made = prefixes() / "0123456789abcdef"
    (made / "bin").mkdir(parents=True)
    tools: dict[str, dict[str, str]] = {}
    for name, code in SCRIPTS.items():
        script = made / "bin" / name
        script.write_text(f"#!/bin/sh\n{code}\n")
        script.chmod(0o755)
        tools[name] = {"path": f"bin/{name}", "sha256": file_sha256(script)}
    system = tmp_path / "llc"  # of the machine's own LLVM
    system.write_text("#!/bin/sh\necho llc\n")
    system.chmod(0o755)
    tools["llc"] = {"path": str(system), "sha256": file_sha256(system)}
    facts = {"stack": "13.1", "llvm": {"version": "22.1.8"}, "image": "here", "tools": tools}
    facts["packages"] = ["llvm/22.1.8#aa:bb", "cuda_tile/13.1.3#cc:dd"]
    (made / "tools.json").write_text(json.dumps(facts))
    (prefixes() / "current").symlink_to(made.name)
    return made


@pytest.mark.usefixtures("prefix")
def test_what_was_built_last_is_found(prefix: Path):
    found = NativeToolchain.find()
    assert (found.prefix, found.stack, found.llvm, found.image) == (prefix, "13.1", "22.1.8", "here")
    assert (found.cuda_tile, found.issues) == ("13.1.3", ())
    assert found.has("copy", "llc")
    assert not found.has("copy", "mlir-opt")


def test_files_go_in_and_come_out(prefix: Path):
    with NativeToolchain.find().open() as tools:
        done = tools.run("copy", ["a", "b"], files={"a": b"\x00\xff", "c": "text"}, outputs=["b"])
        assert (done.stdout, done.files) == ("copied a\n", {"b": b"\x00\xff"})
        assert tools.run("copy", ["c", "b"], files={"c": "ä"}, outputs=["b"]).files == {"b": "ä".encode()}
        assert tools.run("llc", [], files={}).stdout == "llc\n"
        first, second = (tools.run("folder", [], files={"only": ""}).stdout.split() for _ in range(2))
    assert first[1:] == second[1:] == ["only"]  # nothing of an earlier call
    assert first[0] != second[0]
    assert not Path(first[0]).parent.exists()
    assert prefix.is_dir()


@pytest.mark.usefixtures("prefix")
def test_a_tool_sees_nothing_of_the_callers_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LLVM_DIR", "/leak")
    with NativeToolchain.find().open() as tools:
        assert "leak" not in tools.run("environment", [], files={}).stdout


@pytest.mark.usefixtures("prefix")
def test_a_failing_tool_is_quoted():
    with NativeToolchain.find().open() as tools, pytest.raises(ToolFailed) as caught:
        tools.run("fails", ["--option", "a b"], files={})
    parts = ("fails --option 'a b'", "exited 7 (stack 13.1, LLVM 22.1.8)", "error: bad module")
    assert [part for part in parts if part not in str(caught.value)] == []
    assert caught.value.stderr == "error: bad module\n"


@pytest.mark.usefixtures("prefix")
def test_an_output_that_was_not_written_is_an_error():
    with NativeToolchain.find().open() as tools:
        with pytest.raises(ToolchainError, match="copy a b wrote no c, d"):
            tools.run("copy", ["a", "b"], files={"a": ""}, outputs=["c", "b", "d"])
        with pytest.raises(ToolchainError, match=rf"\(stack 13\.1\) has no mlir-opt\n  next: {MAKE}"):
            tools.run("mlir-opt", [], files={})


def _change(path: Path) -> None:
    path.write_text(path.read_text() + "# more\n")


@pytest.mark.parametrize("damage", [_change, Path.unlink])
@pytest.mark.parametrize("name", ["copy", "llc"])
def test_a_tool_that_is_not_what_was_built_is_refused(prefix: Path, damage: Callable[[Path], None], name: str):
    toolchain = NativeToolchain.find()
    path = prefix / toolchain.paths[name]
    damage(path)
    said = rf"{path} differs from the file that was built\n  next: rm -r {prefix}; {MAKE}"
    with pytest.raises(ToolchainError, match=said), toolchain.open():
        pass


@pytest.mark.parametrize("lost", ["current", "0123456789abcdef/tools.json"])
def test_where_none_was_built_the_error_names_the_command(prefix: Path, lost: str):
    (prefixes() / lost).unlink()
    assert prefix.is_dir()
    with pytest.raises(ToolchainError, match=rf"native tools absent: .*{lost}: no such file\n  next: {MAKE}"):
        NativeToolchain.find()


@pytest.mark.parametrize("content", ["{", "[]", '{"stack": "x"}', '{"tools": []}'])
def test_a_damaged_description_is_no_missing_one(prefix: Path, content: str):
    (prefix / "tools.json").write_text(content)
    said = rf"{prefix}/tools.json: damaged: .*\n  next: rm -r {prefix}; {MAKE}"
    with pytest.raises(ToolchainError, match=said) as caught:
        NativeToolchain.find()
    assert not isinstance(caught.value, NativeToolsAbsent)
    (line,) = (line for line in doctor.checks() if line.subject == "native")
    assert line.status == "bad"


def test_the_doctor_warns_of_a_known_defect(prefix: Path):
    def native() -> doctor.Check:
        return next(line for line in doctor.checks() if line.subject == "native")

    assert native().status == "ok"
    facts = json.loads((prefix / "tools.json").read_text())
    newer = {
        "stack": "13.3",
        "llvm": {"version": "23.1.4"},
        "packages": ["llvm/23.1.4#aa:bb", "cuda_tile/13.3.2#cc:dd"],
    }
    (prefix / "tools.json").write_text(json.dumps({**facts, **newer}))
    assert native().status == "note"
    assert "writes i1 constants with one byte an element" in native().found
    assert native().advice == "see docs/native.md, Known defects"
    (prefix / "tools.json").write_text(json.dumps({**facts, **newer, "packages": newer["packages"][:1]}))
    assert native().status == "ok", "LLVM alone"


def test_a_folder_that_is_no_link_is_named(prefix: Path):
    (prefix.parent / "current").unlink()
    (prefix.parent / "current").mkdir()
    with pytest.raises(ToolchainError, match="current: cannot be read: Invalid argument"):
        NativeToolchain.find()


class Engine:
    """Stands in for a container engine that has one image."""

    version = "Stub 1"

    def has(self, image: str) -> bool:
        return image == "sha256:there"


def test_an_engine_without_the_image_is_an_error(prefix: Path, monkeypatch: pytest.MonkeyPatch):
    facts = json.loads((prefix / "tools.json").read_text())
    (prefix / "tools.json").write_text(json.dumps({**facts, "image": "sha256:gone"}))
    monkeypatch.setattr(module.Engine, "find", Engine)
    said = rf"Stub 1 has no image sha256:gone\n  next: rm -r {prefix}; {MAKE}"
    with pytest.raises(ToolchainError, match=said), NativeToolchain.find().open():
        pass
