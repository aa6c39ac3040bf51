"""A real container engine: streamed output, exit codes, the owner of written files, and no leftovers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.errors import ToolFailed
from toolchain.knobs import ROOT
from toolchain.native import owner
from toolchain.native.engine import Container, Engine
from toolchain.native.images import image
from toolchain.native.make_images import ensure

pytestmark = [pytest.mark.needs("engine"), pytest.mark.needs("mmdebstrap")]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine.find()


@pytest.fixture(scope="module")
def base(engine: Engine) -> str:
    return ensure(engine, image("base"))


def test_it_says_what_it_is(engine: Engine):
    assert engine.version.startswith(("Docker ", "Podman "))


def test_a_command_prints_line_by_line(engine: Engine, base: str):
    lines: list[str] = []
    said = engine.run(
        Container(base), ["sh", "-c", "echo one; echo two >&2; sleep 0.3; printf three"], on_line=lines.append
    )
    assert sorted(lines) == ["one", "three", "two"]
    assert sorted(said.splitlines()) == ["one", "three", "two"]


def test_a_command_that_fails_shows_what_it_said(engine: Engine, base: str):
    with pytest.raises(ToolFailed, match="no such thing") as caught:
        engine.run(Container(base), ["sh", "-c", "echo no such thing >&2; exit 3"])
    assert caught.value.returncode == 3


def test_what_it_writes_is_ours_and_what_is_read_only_stays(engine: Engine, base: str, tmp_path: Path):
    given, made = tmp_path / "given", tmp_path / "made"
    given.mkdir()
    made.mkdir()
    (given / "in").write_text("text")
    container = Container(base, mounts={given: ("/given", "ro"), made: ("/made", "rw")}, folder="/made")
    engine.run(container, ["cp", "/given/in", "out"])
    assert (made / "out").read_text() == "text"
    assert (made / "out").stat().st_uid == os.getuid()
    with pytest.raises(ToolFailed, match="Read-only"):
        engine.run(container, ["touch", "/given/other"])


def test_there_is_no_network_unless_it_is_asked_for(engine: Engine, base: str):
    assert engine.run(Container(base), ["ls", "/sys/class/net"]).split() == ["lo"]


def test_an_interrupted_command_leaves_no_container(engine: Engine, base: str):
    def stop(line: str) -> None:
        raise KeyboardInterrupt(line)

    before = _containers(engine)
    with pytest.raises(KeyboardInterrupt, match="started"):
        engine.run(Container(base), ["sh", "-c", "echo started; sleep 600"], on_line=stop)
    assert _containers(engine) == before


def test_the_container_of_a_killed_command_goes_before_the_next_one(engine: Engine, base: str):
    code = (
        "import sys; from toolchain.native.engine import Container, Engine; "
        f"Engine.find().run(Container({base!r}), ['sh', '-c', 'echo started; sleep 600'], on_line=print)"
    )
    command = [sys.executable, "-u", "-c", code]
    before = _containers(engine)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as killed:
        try:
            assert killed.stdout is not None
            assert killed.stdout.readline() == "started\n"
            engine.run(Container(base), ["true"])
            assert len(_containers(engine)) == len(before) + 1, "its process is there"
        finally:
            killed.kill()
    assert len(_containers(engine)) == len(before) + 1
    engine.run(Container(base), ["true"])
    assert _containers(engine) == before


def _containers(engine: Engine) -> list[str]:
    """The containers of these tests; others may be running too."""
    found = engine._client.containers.list(all=True, filters={"label": owner.LABEL}, ignore_removed=True)
    return sorted(container.id for container in found if "echo started" in " ".join(container.attrs["Config"]["Cmd"]))
