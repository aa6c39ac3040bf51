"""The frame of a native build: its name, its folders, the leftovers of a failed one. A stub does the work itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from toolchain.errors import ToolchainError, UsageError
from toolchain.native import build as module
from toolchain.native.build import BuildPlan, Folders, build, main, prefixes
from toolchain.native.engine import Container
from toolchain.pinned.stacks import stacks

STACK = stacks().stack()
PLAN = BuildPlan(STACK.name, "system")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILESTACK_TOOLCHAIN", str(tmp_path / "toolchain"))
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILESTACK_DEBIAN_MIRROR", "http://deb.example/debian")


Work = Callable[[str], None]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Sets what a build on this machine does: Python that is run with the prefix as `prefix`."""

    def does(code: str) -> None:
        start = "import json, pathlib, sys; prefix = pathlib.Path(sys.argv[1])\n"
        monkeypatch.setattr(BuildPlan, "arguments", lambda _, folders: ["-c", start + code, str(folders.prefix)])

    return does


GOOD = """
print("== llvm: building", flush=True)
(prefix / "tool").write_text("a tool")
(prefix / "tools.json").write_text(json.dumps({"stack": "s", "tools": {"mlir-opt": {}}}))
print("done", file=sys.stderr)
"""
BAD = """
(prefix / "tool").write_text("half a tool")
print("== llvm: building", flush=True)
print("error: no space left", file=sys.stderr)
sys.exit(3)
"""


def here(tmp_path: Path, plan: BuildPlan = PLAN, on_line: Callable[[str], None] = lambda _: None) -> Path:
    return build(plan, engine=None, sources=None, packages=tmp_path / "packages", on_line=on_line)


def left() -> list[str]:
    """The content of the folder of prefixes, without the log."""
    return sorted(path.name for path in prefixes().iterdir() if path.name != "build.log")


def test_a_build_makes_its_prefix_once(tmp_path: Path, work: Work):
    work(GOOD)
    lines: list[str] = []
    prefix = here(tmp_path, on_line=lines.append)
    assert lines == ["== llvm: building", "done"]
    assert prefix == prefixes() / PLAN.digest("here")
    assert json.loads((prefix / "tools.json").read_text()) == {"image": "here", "stack": "s", "tools": {"mlir-opt": {}}}
    assert (prefix / "tool").read_text() == "a tool"
    assert [name for name in left() if name != "current"] == [prefix.name]
    work(BAD)  # which is not run
    assert here(tmp_path) == prefix


def test_a_build_that_fails_leaves_nothing(tmp_path: Path, work: Work):
    work(BAD)
    with pytest.raises(ToolchainError, match="no space left"):
        here(tmp_path)
    assert left() == []
    work(GOOD.replace("tools.json", "other.json"))  # ends well, but without saying what it made
    with pytest.raises(ToolchainError, match=r"wrote no tools\.json"):
        here(tmp_path)
    assert left() == []


def test_of_two_builds_at_once_one_waits_for_the_other(tmp_path: Path, work: Work):
    work(f"import time; open({str(tmp_path / 'runs')!r}, 'a').write('run\\n'); time.sleep(0.5)\n{GOOD}")
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: here(tmp_path), range(2)))
    assert made == [prefixes() / PLAN.digest("here")] * 2
    assert (tmp_path / "runs").read_text() == "run\n"  # the second one found what the first had made


def test_what_a_compiler_quotes_need_not_be_text(tmp_path: Path, work: Work):
    work("sys.stdout.buffer.write(b'a.c:1:2: error: caf\\xe9\\n' + b'error: no\\n'); sys.exit(4)")
    with pytest.raises(ToolchainError, match="error: caf\N{REPLACEMENT CHARACTER}\nno"):
        here(tmp_path)


def test_a_failure_is_told_by_what_the_compiler_said_first(tmp_path: Path, work: Work):
    said = [
        "[1/2] c++ a.cpp",
        *(f"a.cpp:{line}:1: error: no member named 'x'" for line in (1, 1, 2, 3, 4, 5, 6)),
        "ninja: build stopped: subcommand failed.",
        "ERROR: cuda_tile/1.0: Error in build() method, line 7",
        "\tConanException: Error 1 while executing",
        f"{module.DOES_NOT_BUILD}cuda_tile 1.0",
    ]
    work(f"print({chr(10).join(said)!r}); sys.exit(4)")
    with pytest.raises(module.DoesNotBuildError) as caught:
        here(tmp_path)
    lines = str(caught.value).splitlines()
    assert lines[0] == "cuda_tile 1.0 does not build:"
    assert lines[1:6] == [f"a.cpp:{line}:1: error: no member named 'x'" for line in range(1, 6)]
    assert "Error 1 while executing" in lines
    assert left() == []


CONFIGURE = """\
-- The CXX compiler identification is GNU 14.2.0
CMake Error at /usr/lib/llvm-22/lib/cmake/llvm/LLVMExports.cmake:80 (set_target_properties):
  The link interface of target "LLVMSupport" contains:

    ZLIB::ZLIB

  but the target was not found.  Possible reasons include:

    * There is a typo in the target name.


CMake Error: CMake was unable to find a build program corresponding to "Ninja".
-- Generating done (0.0s)
CMake Generate step failed.  Build files cannot be regenerated correctly.
ERROR: cuda_tile/1.0: Error in build() method, line 78
\tcmake.configure()
\tConanException: Error 1 while executing
"""


def test_a_failed_configure_is_told_by_what_cmake_said(tmp_path: Path, work: Work):
    work(f"print({CONFIGURE + module.DOES_NOT_BUILD + 'cuda_tile 1.0'!r}); sys.exit(4)")
    with pytest.raises(module.DoesNotBuildError) as caught:
        here(tmp_path)
    assert str(caught.value).splitlines() == [
        "cuda_tile 1.0 does not build:",
        "CMake Error at /usr/lib/llvm-22/lib/cmake/llvm/LLVMExports.cmake:80 (set_target_properties):",
        '  The link interface of target "LLVMSupport" contains:',
        "    ZLIB::ZLIB",
        "  but the target was not found.  Possible reasons include:",
        "    * There is a typo in the target name.",
        'CMake Error: CMake was unable to find a build program corresponding to "Ninja".',
        "Error 1 while executing",
    ]


def test_a_failure_before_anything_is_built_is_no_matter_of_the_sources(tmp_path: Path, work: Work):
    work("print('ERROR: cuda_tile/1.0: no such archive'); sys.exit(4)")
    with pytest.raises(ToolchainError, match=r"^cuda_tile/1\.0: no such archive") as caught:
        here(tmp_path)
    assert not isinstance(caught.value, module.DoesNotBuildError)


def test_a_build_that_was_cut_off_is_made_anew(tmp_path: Path, work: Work):
    work(GOOD)
    prefix = prefixes() / PLAN.digest("here")
    prefix.mkdir(parents=True)
    (prefix / "half").touch()
    assert here(tmp_path) == prefix
    assert sorted(path.name for path in prefix.iterdir()) == ["bin", "tool", "tools.json"]


def test_a_source_mirror_that_is_not_there_is_said_before_anything_is_made(tmp_path: Path, work: Work):
    work(GOOD)
    with pytest.raises(UsageError, match=rf"--source-mirror {tmp_path}/none: no such folder"):
        build(PLAN, engine=None, sources=tmp_path / "none", packages=tmp_path / "packages", on_line=lambda _: None)
    assert not prefixes().exists()


def test_a_link_in_the_source_mirror_that_leads_nowhere_is_said_before_anything_is_made(tmp_path: Path, work: Work):
    work(GOOD)
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror/cuda-tile").symlink_to("/nowhere/cuda-tile")
    said = rf"{tmp_path}/mirror/cuda-tile is a symbolic link to /nowhere/cuda-tile, which is not there\n  next: rm "
    with pytest.raises(UsageError, match=said):
        build(PLAN, engine=None, sources=tmp_path / "mirror", packages=tmp_path / "packages", on_line=lambda _: None)
    assert not prefixes().exists()


class Engine:
    """Stands in for a container engine: records the command it should run, and makes a prefix."""

    version = "Stub 1"

    def __init__(self) -> None:
        self.ran: list[tuple[Container, Sequence[str]]] = []

    def run(self, container: Container, command: Sequence[str], *, on_line: Callable[[str], None]) -> str:
        self.ran.append((container, command))
        (prefix,) = (outside for outside, (inside, _) in container.mounts.items() if inside == module.PREFIX)
        (prefix / "tools.json").write_text("{}")
        on_line("line")
        return "line"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    made = Engine()
    monkeypatch.setattr(module, "ensure", lambda _, wanted: f"sha256:of-{wanted.name}")
    monkeypatch.setattr(module.Engine, "find", lambda: made)
    return made


def test_a_build_in_a_container(tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "sources").mkdir()
    (tmp_path / "ca.crt").touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("https_proxy", "http://proxy.example")
    monkeypatch.setenv("CFLAGS", "-O0")
    packages = tmp_path / "packages"
    prefix = build(PLAN, engine=engine, sources=tmp_path / "sources", packages=packages, on_line=lambda _: None)  # type: ignore[arg-type]
    built_in = f"sha256:of-{PLAN.image}"
    assert prefix == prefixes() / PLAN.digest(built_in)
    assert json.loads((prefix / "tools.json").read_text()) == {"image": built_in}
    ((container, command),) = engine.ran
    assert container.image == built_in
    inside = {inside: (outside, mode) for outside, (inside, mode) in container.mounts.items()}
    assert inside["/checkout"] == (module.ROOT, "ro")
    assert inside["/sources"] == (tmp_path / "sources", "ro")
    assert inside["/packages"] == (packages, "rw")
    assert inside[module.CERTIFICATES] == (tmp_path / "ca.crt", "ro")
    assert container.environment["SSL_CERT_FILE"] == module.CERTIFICATES
    assert container.environment["https_proxy"] == "http://proxy.example"
    assert "CFLAGS" not in container.environment
    # What it is told are the places inside.
    assert command == ["python3", *PLAN.arguments(Folders(*map(Path, ("/prefix", "/work", "/packages", "/sources"))))]
    assert build(PLAN, engine=engine, sources=None, packages=packages, on_line=lambda _: None) == prefix  # type: ignore[arg-type]
    assert len(engine.ran) == 1


def test_what_links_in_the_source_mirror_lead_to_is_mounted_too(tmp_path: Path, engine: Engine):
    mirror, elsewhere = tmp_path / "mirror", tmp_path / "elsewhere"
    mirror.mkdir()
    elsewhere.mkdir()
    (mirror / "archive.tar.xz").touch()
    build(PLAN, engine=engine, sources=mirror, packages=tmp_path / "packages", on_line=lambda _: None)  # type: ignore[arg-type]
    (mirror / "cuda-tile").symlink_to(elsewhere)
    other = replace(PLAN, only_llvm=True)
    build(other, engine=engine, sources=mirror, packages=tmp_path / "packages", on_line=lambda _: None)  # type: ignore[arg-type]
    plain, linked = (
        {inside: outside for outside, (inside, _) in container.mounts.items() if inside.startswith("/sources")}
        for container, _ in engine.ran
    )
    assert plain == {"/sources": mirror}
    assert linked == {"/sources/archive.tar.xz": mirror / "archive.tar.xz", "/sources/cuda-tile": mirror / "cuda-tile"}


def test_without_native_nothing_is_done(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert main([]) == 0
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


def test_without_an_engine_it_ends_in_4_and_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TILESTACK_ENGINE", f"unix://{tmp_path}/none.sock")
    assert main(["--native"]) == 4
    said = capsys.readouterr().err
    assert f"error: no container engine answers:\n  unix://{tmp_path}/none.sock: " in said
    assert "next: install one" in said
    assert not prefixes().exists()


def test_the_last_one_built_is_the_current_one(work: Work, capsys: pytest.CaptureFixture[str]):
    work(GOOD)
    assert main(["--native", "--no-container"]) == 0
    prefix = prefixes() / PLAN.digest("here")
    said = capsys.readouterr().out
    assert f"native toolchain in {prefix}, " in said
    assert f"its tools, to be run from here: {prefixes()}/current/bin" in said
    assert (prefixes() / "current/bin/mlir-opt").is_file()
    assert (prefixes() / "current").readlink() == Path(prefix.name)
    assert main(["--native", "--no-container", "--only-llvm"]) == 0
    assert (prefixes() / "current").readlink() == Path(replace(PLAN, only_llvm=True).digest("here"))
    assert main(["--native", "--no-container"]) == 0  # there already: chosen again
    assert (prefixes() / "current").readlink() == Path(prefix.name)


def test_a_failure_leaves_the_current_one(work: Work, capsys: pytest.CaptureFixture[str]):
    work(GOOD)
    assert main(["--native", "--no-container"]) == 0
    before = left()
    work(BAD)
    assert main(["--native", "--no-container", "--llvm", "source"]) == 4
    assert left() == before
    assert (prefixes() / "current").readlink() == Path(PLAN.digest("here"))
    said = capsys.readouterr().err
    assert "no space left" in said
    assert f"the whole output: {prefixes() / 'build.log'}" in said
    assert (prefixes() / "build.log").read_text() == "== llvm: building\nerror: no space left\n"


def test_the_options_reach_the_plan(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "sources").mkdir()
    monkeypatch.chdir(tmp_path)
    options = ["--stack", STACK.name, "--llvm", "source", "--only-llvm", "--without-nvptx"]
    assert main(["--native", *options, "--source-mirror", "sources", "--packages", "kept"]) == 0
    ((container, command),) = engine.ran
    assert container.image == "sha256:of-compilers"
    assert {"--only-llvm", "--without-nvptx", "--source-mirror"} <= set(command)
    assert container.mounts[tmp_path / "sources"] == ("/sources", "ro")
    assert container.mounts[tmp_path / "kept"] == ("/packages", "rw")
