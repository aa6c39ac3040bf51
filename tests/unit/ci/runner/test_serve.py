"""Jobs one after the other, with a GitHub and a runner that are not the real ones."""

from __future__ import annotations

import getpass
import io
import json
import tarfile
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ci.runner import health
from ci.runner.serve import GitHub, Settings, serve
from toolchain.errors import DeviceError, ToolchainError, UsageError

RUN = """\
#!/bin/sh
[ "$1" = --jitconfig ] || exit 9
echo "$2 $(cat .env) $(ls -A | wc -l)" >> {log}
touch left-behind
{then}
"""


@dataclass
class Fake:
    """`asked`: what came in, as method, path, whether the token was there, and the body."""

    asked: list[tuple[str, str, bool, object]] = field(default_factory=list)
    refuses: int = 0
    address: str = ""

    def registered(self) -> list[str]:
        return [method for method, *_ in self.asked]


@pytest.fixture
def fake() -> Generator[Fake]:
    made = Fake()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            token = self.headers["Authorization"] == "Bearer secret-token"
            made.asked.append((self.command, self.path, token, json.loads(body) if body else None))
            gone = self.command == "DELETE"  # GitHub forgets a runner after its job
            content = b"{}" if gone else json.dumps({"runner": {"id": 7}, "encoded_jit_config": "config"}).encode()
            self.send_response(made.refuses or (404 if gone else 201))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_DELETE = _answer  # noqa: N815 - the base class calls them so

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass
class Runner:
    """A place with an archive, and what the check of the GPU says each time."""

    folder: Path
    github: GitHub
    checks: list[str] = field(default_factory=list)

    @property
    def log(self) -> list[str]:
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []

    def archive(self, then: str = "") -> None:
        text = RUN.format(log=self.folder / "log", then=then).encode()
        with tarfile.open(self.folder / "actions-runner.tar.gz", "w:gz") as tar:
            entry = tarfile.TarInfo("./run.sh")
            entry.size, entry.mode = len(text), 0o755
            tar.addfile(entry, io.BytesIO(text))

    def serve(self, jobs: int) -> None:
        settings = Settings("owner/name", "h200", ["gpu", "h200"], getpass.getuser())
        serve(settings, self.github, self.folder, Path("/hook.sh"), say=str, jobs=jobs)


@pytest.fixture
def runner(tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Runner:
    made = Runner(tmp_path, GitHub("owner/name", "secret-token", fake.address))
    made.archive()

    def check(*_: object) -> list[health.Finding]:
        return [health.Finding("gpu", "looked", made.checks.pop(0) if made.checks else "")]

    monkeypatch.setattr(health, "check", check)
    return made


def test_each_job_has_a_runner_of_its_own(runner: Runner, fake: Fake) -> None:
    runner.serve(jobs=2)
    assert runner.log == ["config ACTIONS_RUNNER_HOOK_JOB_STARTED=/hook.sh 2"] * 2  # run.sh and .env, nothing left
    assert not (runner.folder / "job").exists()
    assert fake.registered() == ["POST", "DELETE"] * 2
    method, path, token, body = fake.asked[0]
    assert (method, path, token) == ("POST", "/repos/owner/name/actions/runners/generate-jitconfig", True)
    assert isinstance(body, dict) and body["labels"] == ["gpu", "h200"] and body["name"].startswith("h200-")
    assert fake.asked[1][:3] == ("DELETE", "/repos/owner/name/actions/runners/7", True)
    names = {str(body["name"]) for *_, body in fake.asked if isinstance(body, dict)}
    assert len(names) == 2


def test_a_gpu_that_becomes_sick_takes_itself_out(runner: Runner, fake: Fake) -> None:
    runner.checks = ["", "Xid 79: the GPU has fallen off the bus"]
    with pytest.raises(DeviceError, match="takes no more jobs:\n  sick gpu: looked - Xid 79"):
        runner.serve(jobs=5)
    assert len(runner.log) == 1 and fake.registered() == ["POST", "DELETE"]
    assert "Xid 79" in (runner.folder / "sick.json").read_text()
    with pytest.raises(DeviceError, match=r"out of service: .*sick\.json says why"):
        runner.serve(jobs=5)
    assert len(runner.log) == 1


def test_a_refused_token(runner: Runner, fake: Fake) -> None:
    fake.refuses = 401
    with pytest.raises(ToolchainError, match="GitHub refused POST of a runner for owner/name: 401") as found:
        runner.serve(jobs=1)
    assert "secret" not in f"{found.value!r} {runner.github!r}" and runner.log == []


def test_a_runner_that_fails_is_removed_and_ends_the_service(runner: Runner, fake: Fake) -> None:
    runner.archive(then="exit 3")
    with pytest.raises(ToolchainError, match="ended with 3"):
        runner.serve(jobs=5)
    assert fake.registered() == ["POST", "DELETE"] and not (runner.folder / "job").exists()


def test_what_a_job_leaves_running_is_ended(runner: Runner) -> None:
    runner.archive(then=f"(trap '' TERM; sleep 0.5; touch {runner.folder}/survived) & exit 0")
    runner.serve(jobs=1)
    threading.Event().wait(0.7)
    assert not (runner.folder / "survived").exists()


def test_the_token_is_nowhere_on_disk(runner: Runner) -> None:
    runner.serve(jobs=1)
    files = [path for path in runner.folder.rglob("*") if path.is_file()]
    assert files and all(b"secret-token" not in path.read_bytes() for path in files)


def test_without_set_up(runner: Runner) -> None:
    (runner.folder / "actions-runner.tar.gz").unlink()
    with pytest.raises(UsageError, match="setup"):
        runner.serve(jobs=1)
