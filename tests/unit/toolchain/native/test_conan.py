from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from toolchain.errors import ToolchainError, ToolFailed
from toolchain.native import conan as module
from toolchain.native.conan import Package, graph, install

from .conftest import Stub


def test_conan_sees_nothing_that_changes_what_is_built(stub: Stub, monkeypatch: pytest.MonkeyPatch):
    foreign = (
        "CONAN_HOME",
        "CONAN_DEFAULT_PROFILE",
        "CMAKE_PREFIX_PATH",
        "LLVM_DIR",
        "CC",
        "CXX",
        "CXXFLAGS",
        "LDFLAGS",
        "CPATH",
        "LIBRARY_PATH",
        "DESTDIR",
        "NINJA_STATUS",
        "GIT_DIR",
    )
    for name in (*foreign, "CCACHE_DIR", "LC_ALL"):
        monkeypatch.setenv(name, "/the/users")
    monkeypatch.setenv("https_proxy", "http://proxy.example")
    monkeypatch.setenv("GIT_SSL_CAINFO", "/a/proxys")
    stub.does("print(json.dumps(dict(os.environ)))")
    seen: dict[str, str] = stub.conan.ask("config")
    assert [name for name, value in seen.items() if value == "/the/users"] == []
    assert seen["CONAN_HOME"] == str(stub.conan.home)
    assert seen["CCACHE_DIR"] == str(stub.conan.ccache)
    assert (seen["LC_ALL"], seen["https_proxy"]) == ("C.UTF-8", "http://proxy.example")
    assert seen["GIT_SSL_CAINFO"] == "/a/proxys"
    assert stub.calls() == [["config", "--format=json"]]


def test_a_failure_names_the_command_and_the_version(stub: Stub, capfd: pytest.CaptureFixture[str]):
    stub.does("print('out'); print('ERROR: ' + 'no ' * 3000 + 'recipe', file=sys.stderr); sys.exit(6)")
    with pytest.raises(ToolFailed, match=r"conan export 'a b'\n  exited 6 \(Conan 9\.9\)\n(.|\n)*no recipe") as caught:
        stub.conan.quietly("export", "a b")
    assert len(str(caught.value)) < 5000
    with pytest.raises(ToolFailed, match=r"conan create x\n  exited 6(.|\n)*stands above"):
        stub.conan.run("create", "x")
    out, err = capfd.readouterr()
    assert out.startswith("out\n")  # of run; what a quiet command says is in its error alone
    assert out.count("ERROR") == 1
    assert err == ""


def node(ref: str, binary: str, **more: object) -> dict[str, Any]:
    return {"ref": ref, "package_id": f"id of {ref}", "binary": binary, "recipe": "Cache", **more}


def nodes(*rows: dict[str, Any]) -> str:
    consumer = {"ref": "conanfile", "package_id": None, "binary": None, "recipe": "Consumer"}
    made = {"graph": {"nodes": {str(at): row for at, row in enumerate((consumer, *rows))}}}
    return f"print({json.dumps(made)!r})"


def test_the_graph_has_what_others_need_first(stub: Stub):
    stub.does(nodes(node("cuda_tile/13.1.3#rev", "Missing"), node("llvm/22.1.8#other", "Cache")))
    packages = graph(stub.conan, ["folder", "-o", "x"])
    assert packages == [
        Package("llvm/22.1.8#other", "id of llvm/22.1.8#other", there=True),
        Package("cuda_tile/13.1.3#rev", "id of cuda_tile/13.1.3#rev", there=False),
    ]
    assert [(package.name, package.version) for package in packages] == [("llvm", "22.1.8"), ("cuda_tile", "13.1.3")]
    assert stub.calls() == [["graph", "info", "folder", "-o", "x", "--format=json"]]


def test_a_package_that_cannot_be_is_an_error_with_the_recipes_words(stub: Stub):
    stub.does(nodes(node("llvm/22.1.8#r", "Cache"), node("cuda_tile/1#r", "Invalid", info_invalid="Linux only")))
    with pytest.raises(ToolchainError, match=r"^cuda_tile/1#r: Linux only$"):
        graph(stub.conan, [])


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands of an install, which are not run: they make the folder, and fail where pip's mirror is `broken`."""
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        if command[1:3] == ["-m", "venv"]:
            Path(command[3], "bin").mkdir(parents=True)
            return subprocess.CompletedProcess(command, 0, "", "")
        return subprocess.CompletedProcess(command, int("broken" in str(module.LOCK)), "", "no matching distribution")

    monkeypatch.setattr(subprocess, "run", run)
    return ran


def test_conan_is_installed_once_from_its_lock(tmp_path: Path, steps: list[list[str]]):
    made = install(tmp_path)
    assert [command[1:3] for command in steps] == [["-m", "venv"], ["install", "-q"]]
    assert steps[1][3:] == ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(module.LOCK)]
    assert f"\nconan=={made.version.removeprefix('Conan ')} " in f"\n{module.LOCK.read_text()}"
    assert (made.home, made.ccache) == (tmp_path / "home", tmp_path / "ccache")
    assert install(tmp_path) == made
    assert len(steps) == 2


def test_another_lock_is_another_conan(tmp_path: Path, steps: list[list[str]], monkeypatch: pytest.MonkeyPatch):
    made = install(tmp_path)
    monkeypatch.setattr(module, "LOCK", tmp_path / "lock")
    module.LOCK.write_text("conan==99.1 \\\n    --hash=sha256:0\n")
    other = install(tmp_path)
    assert (other.version, other.program.parent == made.program.parent) == ("Conan 99.1", False)
    assert len(steps) == 4
    module.LOCK.write_text("colorama==1\n")
    with pytest.raises(ToolchainError, match=r"no conan in it(.|\n)*git checkout"):
        install(tmp_path)


def test_an_install_that_failed_is_made_anew(tmp_path: Path, steps: list[list[str]], monkeypatch: pytest.MonkeyPatch):
    lock = module.LOCK.read_bytes()
    monkeypatch.setattr(module, "LOCK", tmp_path / "broken.lock")
    module.LOCK.write_bytes(lock)
    with pytest.raises(ToolchainError, match=r"installing Conan failed(.|\n)*no matching(.|\n)*check the network"):
        install(tmp_path)
    monkeypatch.setattr(module, "LOCK", tmp_path / "lock")
    module.LOCK.write_bytes(lock)
    assert install(tmp_path).program.parent.is_dir()
    assert len(steps) == 4
