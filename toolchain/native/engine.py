"""A container engine, Docker or Podman, through the PyPI package `docker`: both speak Docker's interface.

Podman's socket is there after `systemctl --user start podman.socket`. Rootless engines of both kinds work.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..errors import ToolchainError, ToolFailed
from ..knobs import engine_address, runtime_dir
from . import docker_archive, owner
from .streams import Streams

WITHOUT = (
    "install one: docker.io or podman are packages of Debian and Ubuntu (docs/native.md). Without one, everything but "
    "the native tools works: nox -s build_toolchain, tests and gpu_tests need no engine"
)
CDI = (Path("/etc/cdi"), Path("/var/run/cdi"))  # where `nvidia-ctk cdi generate` describes the GPUs
Gpus = Literal["cdi", "nvidia", "none"]
LINES = 40  # of a failed command's output that its error shows


@dataclass(frozen=True)
class Container:
    """How a command runs: the image's id, mounts (host folder to (folder inside, "ro" or "rw")), environment.

    `network`: the host's, or none at all. `user`: as whom, None for the one whose files the mounts are. `gpus`: how it
    gets all of the host's: "cdi", the Container Device Interface, "nvidia", Docker's own --gpus, or not at all.
    `stdin`: whether it has a standard input, which `attach` feeds.
    """

    image: str
    mounts: Mapping[Path, tuple[str, str]] = field(default_factory=dict[Path, tuple[str, str]])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    folder: str = "/"
    network: bool = False
    user: str | None = None
    gpus: Gpus = "none"
    stdin: bool = False


class Engine:
    """A running engine. Find it with `Engine.find()`."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self.address = client, address
        weakref.finalize(self, client.close)
        info: Any = client.info()
        version: Any = client.version()
        self.rootless = any("rootless" in str(option) for option in info.get("SecurityOptions") or ())
        components = [str(row.get("Name", "")) for row in version.get("Components") or ()]
        kind = "Podman" if any("Podman" in name for name in components) else "Docker"
        self.version = f"{kind} {version.get('Version', '?')}{', rootless' if self.rootless else ''}"

    @classmethod
    def find(cls) -> Engine:
        """The engine at TILESTACK_ENGINE or DOCKER_HOST, or the first socket of the usual ones. Raises ToolchainError
        that names what was tried."""
        try:
            import docker
            import docker.errors
        except ModuleNotFoundError as error:
            raise ToolchainError("the PyPI package docker is not installed", hint="nox -s build_toolchain") from error
        tried: list[str] = []
        for address in addresses():
            if address.startswith("unix://") and (problem := unreachable(address.removeprefix("unix://"))):
                tried.append(f"{address}: {problem}")
                continue
            try:
                return cls(docker.DockerClient(base_url=address, timeout=600), address)
            except (docker.errors.DockerException, OSError) as error:
                tried.append(f"{address}: {error}")
        raise ToolchainError("no container engine answers:\n  " + "\n  ".join(tried), hint=WITHOUT)

    def gpus(self) -> Gpus:
        """How this engine would give a container the host's GPUs."""
        if any(True for folder in CDI for _ in folder.glob("*nvidia*")):
            return "cdi"
        return "nvidia" if "nvidia" in (self._client.info().get("Runtimes") or {}) else "none"

    def has(self, image: str) -> bool:
        """Whether it has the image of this id."""
        return self._own_id(image) is not None

    def _own_id(self, image: str) -> str | None:
        """The id under which the engine keeps our image: `image` itself, or, in an engine that gives images ids of its
        own, the one of the image with our tag. None if it has neither."""
        import docker.errors

        for name in (image, docker_archive.tag_of(image)):
            try:
                return str(self._client.images.get(name).id)
            except docker.errors.ImageNotFound:
                continue
        return None

    def load(self, archive: Path) -> list[str]:
        """Take in a docker-archive; returns the ids of its images. Raises ToolchainError if the engine does not."""
        import docker.errors

        try:
            with archive.open("rb") as file:
                return [str(image.id) for image in self._client.images.load(file)]
        except docker.errors.DockerException as error:
            raise ToolchainError(
                f"{self.version} does not take {archive}: {error}", hint=f"if it is damaged: rm {archive}; run it again"
            ) from error

    def start(
        self, container: Container, command: Sequence[str], *, before: Callable[[Any], None] = lambda _: None
    ) -> Any:
        """Start a command in a new container, which `before` gets before it starts; the caller removes it or, if it is
        killed, whoever starts the next one. Raises ToolchainError if the engine cannot.

        From here on SIGTERM and SIGHUP, with which a cancelled job and a closed terminal end, are exceptions."""
        import docker.errors
        import docker.types

        mounts = [
            docker.types.Mount(inside, str(outside.absolute()), type="bind", read_only=mode == "ro")
            for outside, (inside, mode) in container.mounts.items()
        ]
        # Files that it writes into a mount belong to the caller. A rootless engine maps the caller to its root.
        user = container.user or ("0:0" if self.rootless else f"{os.getuid()}:{os.getgid()}")
        request = docker.types.DeviceRequest
        gpus = {
            "cdi": [request(driver="cdi", device_ids=["nvidia.com/gpu=all"])],
            "nvidia": [request(count=-1, capabilities=[["gpu"]])],
            "none": None,
        }[container.gpus]
        try:
            self._remove_orphans()
            made = self._client.containers.create(
                self._own_id(container.image) or container.image,
                list(command),
                mounts=mounts,
                environment=dict(container.environment),
                working_dir=container.folder,
                network_mode="host" if container.network else "none",
                user=user,
                device_requests=gpus,
                init=True,
                stdin_open=container.stdin,
                labels={owner.LABEL: owner.this_process()},
            )
            try:
                before(made)
                made.start()
            except BaseException:
                made.remove(force=True)
                raise
            return made
        except docker.errors.APIError as error:
            raise ToolchainError(
                f"{self.version} did not start a container of {container.image[:19]}: {error.explanation or error}",
                hint="docs/native.md says what an engine needs; does `docker run` or `podman run` work?",
            ) from error

    def _remove_orphans(self) -> None:
        import docker.errors

        mine = {"all": True, "filters": {"label": owner.LABEL}, "ignore_removed": True}
        for container in self._client.containers.list(**mine):
            if not owner.is_gone(container.labels[owner.LABEL]):
                continue
            print(f"removing container {container.id[:12]}: what started it was killed", file=sys.stderr, flush=True)
            try:
                container.remove(force=True)
            except docker.errors.APIError as error:
                if error.status_code not in (404, 409):  # somebody else removed it, or is about to
                    raise

    def attach(self, container: Container, command: Sequence[str]) -> int:
        """Run a command to its end on this process's standard input, output and error; returns its exit code.

        Raises ToolchainError if it cannot be started. Ends the command if we are interrupted."""
        streams: list[Streams] = []

        def connect(made: Any) -> None:
            streams.append(Streams(made))

        started = self.start(container, command, before=connect)
        try:
            streams[0].copy()
            return int(started.wait()["StatusCode"])
        finally:
            started.remove(force=True)

    def run(
        self, container: Container, command: Sequence[str], *, on_line: Callable[[str], None] = lambda _: None
    ) -> str:
        """Run a command to its end and return its output, which `on_line` gets as it comes, line by line.

        Raises ToolFailed with the end of the output. Ends the command if we are interrupted.
        """
        started = self.start(container, command)
        lines: list[str] = []
        stream = started.logs(stream=True, follow=True)
        try:
            for line in _lines(stream):
                lines.append(line)
                on_line(line)
            code = int(started.wait()["StatusCode"])
            # A stream that follows can end before a command's last words (seen with one line in hundreds that had no
            # newline); the log has them all, in the same order.
            for line in list(_lines([started.logs()]))[len(lines) :]:
                lines.append(line)
                on_line(line)
        finally:
            started.remove(force=True)
            for _ in stream:  # to its end, which is now: only that closes the connection
                pass
        if code:
            where = f"{self.version}, {container.image[:19]}"
            raise ToolFailed(command, code, "\n".join(lines[-LINES:]), version=where)
        return "\n".join(lines)


def execute(started: Any, command: Sequence[str], folder: str, seen: Path) -> tuple[int, str, str]:
    """Run a command in a container that runs already, in `folder` of it, which here is `seen`; returns exit code,
    output and error output.

    The output goes through files in that folder: a connection to a running command cannot be closed with this library.
    """
    api = started.client.api
    words = ["sh", "-c", 'exec "$@" >.stdout 2>.stderr', "sh", *command]
    made = api.exec_create(started.id, words, workdir=folder)["Id"]
    api.exec_start(made, detach=True)
    while (state := api.exec_inspect(made))["Running"]:
        time.sleep(0.01)
    stdout, stderr = ((seen / name).read_text(errors="replace") for name in (".stdout", ".stderr"))
    return int(state["ExitCode"]), stdout, stderr


def addresses() -> list[str]:
    """Where an engine may listen, in the order in which we try."""
    if chosen := engine_address():
        return [chosen]
    user = runtime_dir()
    sockets = ["/var/run/docker.sock", "/run/podman/podman.sock"]
    if user:
        sockets += [f"{user}/docker.sock", f"{user}/podman/podman.sock"]
    return [f"unix://{path}" for path in sockets]


def unreachable(path: str) -> str | None:
    """Why nothing answers at a socket, or None. Asked first: docker leaves its own socket open where it fails."""
    with socket.socket(socket.AF_UNIX) as tried:
        try:
            tried.connect(path)
        except OSError as error:
            return error.strerror or str(error)
    return None


def _lines(chunks: Any) -> Any:
    """Lines of a stream of bytes that is cut anywhere."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.decode(errors="replace").rstrip("\r") for line in whole)
    if rest:
        yield rest.decode(errors="replace").rstrip("\r")
