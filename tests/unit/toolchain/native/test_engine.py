"""The places where an engine is looked for, and the requests to it, recorded by a fake client."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, ImageLoadError, ImageNotFound

from toolchain import command
from toolchain.errors import ToolchainError, ToolFailed
from toolchain.native import engine, owner
from toolchain.native.engine import Container, Engine, _lines, addresses

ENDS = (signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TILESTACK_ENGINE", "DOCKER_HOST", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_the_usual_sockets_are_tried_the_machines_first(monkeypatch: pytest.MonkeyPatch):
    machine = ["unix:///var/run/docker.sock", "unix:///run/podman/podman.sock"]
    assert addresses() == machine
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    assert addresses() == [*machine, "unix:///run/user/7/docker.sock", "unix:///run/user/7/podman/podman.sock"]


def test_an_address_that_was_named_is_the_only_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    monkeypatch.setenv("DOCKER_HOST", "unix:///docker")
    assert addresses() == ["unix:///docker"]
    monkeypatch.setenv("TILESTACK_ENGINE", "unix:///ours")
    assert addresses() == ["unix:///ours"]


def test_without_an_engine_the_error_lists_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tried = [f"unix://{tmp_path}/none.sock", f"unix://{tmp_path}/file", f"unix://{tmp_path}/deaf.sock"]
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(tmp_path / "deaf.sock"))  # and nobody listens
    monkeypatch.setattr("toolchain.native.engine.addresses", lambda: tried)
    with pytest.raises(ToolchainError) as caught:
        Engine.find()
    first, *lines, hint = str(caught.value).splitlines()
    assert first == "no container engine answers:"
    said = ("No such file or directory", "Connection refused", "Connection refused")
    assert lines == [f"  {address}: {why}" for address, why in zip(tried, said, strict=True)]
    assert "docker.io or podman" in hint


@pytest.mark.parametrize(
    "address", ["nonsense://", "/var/run/docker.sock:x:y", "tcp://127.0.0.1:1", "unix:///" + "long" * 50]
)
def test_an_address_that_cannot_be_is_an_error_of_ours(address: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILESTACK_ENGINE", address)
    with pytest.raises(ToolchainError, match=f"no container engine answers:\n  {address}: "):
        Engine.find()


TEXT = "eins\r\nzwölf €\n\nlast"


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_lines_are_whole_wherever_the_stream_is_cut(size: int, end: str):
    data = (TEXT + end).encode()
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert list(_lines(chunks)) == ["eins", "zwölf €", "", "last"]


def test_bytes_that_are_no_text_are_shown_all_the_same():
    assert list(_lines([b"a\xff\n", b"b\xff"])) == ["a\N{REPLACEMENT CHARACTER}", "b\N{REPLACEMENT CHARACTER}"]
    assert list(_lines([])) == []


class Client:
    """Stands in for docker's: its containers print `chunks` and end with `code`."""

    def __init__(
        self, *, chunks: Sequence[bytes] = (), code: int = 0, options: Sequence[str] = (), kind: str = "Engine"
    ) -> None:
        self.chunks, self.code, self.options, self.kind = chunks, code, options, kind
        self.asked: dict[str, Any] = {}
        self.removed: list[bool] = []
        self.lost = 0  # chunks at the end that a stream does not give
        self.runtimes: dict[str, Any] = {"runc": {}}
        self.left: list[Any] = []  # containers that are there
        self.containers = SimpleNamespace(create=self._create, list=self._list)
        self.refused: APIError | None = None  # what starting a container ends with
        self.known = {"sha256:1": "sha256:1"}  # images by what they can be asked for by
        self.images = SimpleNamespace(get=self._get)

    def _get(self, name: str) -> Any:
        if name not in self.known:
            raise ImageNotFound(f"no such image: {name}")
        return SimpleNamespace(id=self.known[name])

    def info(self) -> dict[str, Any]:
        return {"SecurityOptions": list(self.options) or None, "Runtimes": self.runtimes}

    def version(self) -> dict[str, Any]:
        return {"Version": "9.9", "Components": [{"Name": self.kind}]}

    def close(self) -> None: ...

    def _logs(self, stream: bool = False, follow: bool = False) -> Any:
        del follow
        return (chunk for chunk in self.chunks[: len(self.chunks) - self.lost]) if stream else b"".join(self.chunks)

    def _start(self) -> None:
        if self.refused:
            raise self.refused

    def _list(self, **wanted: Any) -> list[Any]:
        assert wanted == {"all": True, "filters": {"label": owner.LABEL}, "ignore_removed": True}
        return self.left

    def _create(self, image: str, command: list[str], **options: Any) -> Any:
        self.asked = {"image": image, "command": command, **options}
        return SimpleNamespace(
            start=self._start,
            logs=self._logs,
            wait=lambda: {"StatusCode": self.code},
            remove=lambda force: self.removed.append(force),
        )


def test_an_engine_says_what_it_is():
    assert Engine(Client(), "").version == "Docker 9.9"
    assert Engine(Client(kind="Podman Engine", options=["name=seccomp", "name=rootless"]), "").version == (
        "Podman 9.9, rootless"
    )


def test_a_container_gets_no_more_than_it_is_given(tmp_path: Path):
    client = Client()
    mounts = {tmp_path / "in": ("/in", "ro"), tmp_path / "out": ("/out", "rw")}
    Engine(client, "").run(Container("sha256:1", mounts, {"A": "b"}, folder="/out"), ["true"])
    asked = client.asked
    assert [(row["Source"], row["Target"], row["ReadOnly"]) for row in asked["mounts"]] == [
        (f"{tmp_path}/in", "/in", True),
        (f"{tmp_path}/out", "/out", False),
    ]
    assert (asked["environment"], asked["working_dir"], asked["network_mode"]) == ({"A": "b"}, "/out", "none")
    assert asked["user"] == f"{os.getuid()}:{os.getgid()}"
    assert asked["device_requests"] is None
    Engine(client, "").run(Container("sha256:1", network=True, user="0:0", gpus="cdi"), ["true"])
    assert (client.asked["network_mode"], client.asked["user"]) == ("host", "0:0")
    assert client.asked["device_requests"][0]["DeviceIDs"] == ["nvidia.com/gpu=all"]
    Engine(client, "").run(Container("sha256:1", gpus="nvidia"), ["true"])
    assert (client.asked["device_requests"][0]["Count"], client.asked["device_requests"][0]["Driver"]) == (-1, "")


def test_a_container_has_a_standard_input_only_if_it_is_given_one(monkeypatch: pytest.MonkeyPatch):
    client = Client(code=5)
    order: list[str] = []

    def join(_: object) -> SimpleNamespace:
        order.append("joined")
        return SimpleNamespace(copy=lambda: order.append("copied"))

    monkeypatch.setattr(engine, "Streams", join)
    monkeypatch.setattr(client, "_start", lambda: order.append("started"))
    assert Engine(client, "").attach(Container("sha256:1", stdin=True), ["cat"]) == 5
    assert order == ["joined", "started", "copied"], "joined after the start, the first output would be lost"
    assert client.asked["stdin_open"] is True
    assert client.removed == [True]
    Engine(client, "").start(Container("sha256:1"), ["true"])
    assert client.asked["stdin_open"] is False


def test_how_a_container_gets_the_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine, "CDI", (tmp_path / "none", tmp_path))
    client = Client()
    assert Engine(client, "").gpus() == "none"
    client.runtimes = {"runc": {}, "nvidia": {}}
    assert Engine(client, "").gpus() == "nvidia"
    (tmp_path / "nvidia.yaml").touch()  # which says what there is, so it comes first
    assert Engine(client, "").gpus() == "cdi"


def test_what_a_rootless_engine_writes_is_the_callers():
    client = Client(options=["name=rootless"])
    Engine(client, "").run(Container("sha256:1"), ["true"])
    assert client.asked["user"] == "0:0"  # which is the caller, outside


def test_output_comes_line_by_line_and_the_container_goes():
    client = Client(chunks=[b"one\ntw", b"o\n"])
    lines: list[str] = []
    assert Engine(client, "").run(Container("sha256:1"), ["x"], on_line=lines.append) == "one\ntwo"
    assert lines == ["one", "two"]
    assert client.removed == [True]


def test_the_last_words_are_not_lost_where_the_stream_ends_before_them():
    client = Client(chunks=[b"one\n", b"two"])
    client.lost = 1
    lines: list[str] = []
    assert Engine(client, "").run(Container("sha256:1"), ["x"], on_line=lines.append) == "one\ntwo"
    assert lines == ["one", "two"]


def test_a_failure_shows_the_end_of_the_output():
    client = Client(chunks=[b"".join(b"line %d\n" % number for number in range(100))], code=3)
    with pytest.raises(ToolFailed) as caught:
        Engine(client, "").run(Container("sha256:1"), ["make", "it all"])
    assert (caught.value.returncode, caught.value.command) == (3, ["make", "it all"])
    assert "line 99" in str(caught.value)
    assert "line 59\n" not in str(caught.value)
    assert "Docker 9.9, sha256:1" in str(caught.value)
    assert client.removed == [True]


def test_an_image_is_known_by_its_tag_where_the_engine_gives_it_another_id():
    """Docker does so with containerd's image store: the id there is that of a manifest that the engine writes."""
    client = Client()
    client.known = {"tilestack:1": "sha256:manifest"}
    engine = Engine(client, "")
    assert engine.has("sha256:1") and not engine.has("sha256:2")
    engine.run(Container("sha256:1"), ["true"])
    assert client.asked["image"] == "sha256:manifest"
    client.known["sha256:1"] = "sha256:1"
    engine.run(Container("sha256:1"), ["true"])
    assert client.asked["image"] == "sha256:1"


def test_an_engine_that_cannot_start_a_container_is_quoted():
    client = Client()

    def refuse(*_: object, **__: object) -> None:
        raise APIError("500", explanation="container-init binary not found")

    client.containers.create = refuse
    with pytest.raises(ToolchainError, match=r"Docker 9.9 did not start .* container-init binary not found"):
        Engine(client, "").run(Container("sha256:1"), ["true"])


def test_a_container_that_does_not_start_is_not_left():
    client = Client()
    client.refused = APIError("500", explanation="OCI permission denied")
    with pytest.raises(ToolchainError, match=r"Docker 9.9 did not start .* OCI permission denied"):
        Engine(client, "").run(Container("sha256:1"), ["true"])
    assert client.removed == [True]


def test_an_interrupted_command_leaves_no_container():
    client = Client(chunks=[b"one\n"])

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Engine(client, "").run(Container("sha256:1"), ["x"], on_line=interrupt)
    assert client.removed == [True]


@pytest.mark.usefixtures("signals_end_the_process")
@pytest.mark.parametrize("number", ENDS)
def test_a_command_that_is_terminated_leaves_no_container(number: signal.Signals):
    client = Client(chunks=[b"one\n"])

    def work() -> None:
        Engine(client, "").run(Container("sha256:1"), ["x"], on_line=lambda _: signal.raise_signal(number))

    assert command.run(work, set_up="") == 128 + number
    assert client.removed == [True]


def orphan(started_by: str, removed: list[str], error: int | None = None) -> Any:
    def remove(force: bool) -> None:
        assert force
        removed.append(started_by)
        if error:
            raise APIError(str(error), SimpleNamespace(status_code=error), "of the engine")

    return SimpleNamespace(id="0123456789abcdef", labels={owner.LABEL: started_by}, remove=remove)


def test_what_a_killed_process_left_is_removed_before_the_next_container(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(owner, "is_gone", lambda name: name.startswith("dead"))
    removed: list[str] = []
    client = Client()
    client.left = [orphan("dead 1", removed), orphan("alive", removed), orphan("dead 2", removed, 404)]
    client.left.append(orphan("dead 3", removed, 409))
    Engine(client, "").run(Container("sha256:1"), ["true"])
    assert removed == ["dead 1", "dead 2", "dead 3"]
    assert client.asked["labels"] == {owner.LABEL: owner.this_process()}
    said = capsys.readouterr()
    assert said.err.count("removing container 0123456789ab: what started it was killed") == 3
    assert said.out == ""


def test_what_cannot_be_removed_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(owner, "is_gone", lambda _: True)
    client = Client()
    client.left = [orphan("dead", [], 500)]
    with pytest.raises(ToolchainError, match=r"did not start (.|\n)*of the engine"):
        Engine(client, "").run(Container("sha256:1"), ["true"])
    assert client.asked == {}


def test_an_archive_that_the_engine_does_not_take_is_named(tmp_path: Path):
    client: Any = Client()

    def refuse(_: object) -> None:
        raise ImageLoadError("unexpected EOF")

    client.images = SimpleNamespace(load=refuse)
    archive = tmp_path / "base.tar"
    archive.touch()
    with pytest.raises(ToolchainError, match=rf"Docker 9\.9 does not take {archive}: unexpected EOF\n.*rm {archive}"):
        Engine(client, "").load(archive)
