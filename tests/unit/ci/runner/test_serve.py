"""Jobs one after the other, with a GitHub and a runner that are not the real ones."""

from __future__ import annotations

import getpass
import io
import json
import re
import tarfile
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ci.runner import health
from ci.runner.gpus import Gpu
from ci.runner.listener import Waits
from ci.runner.lock import hold
from ci.runner.serve import GitHub, Settings, Slot, serve
from tests.unit.processes import ends
from toolchain.errors import DeviceError, ToolchainError, UsageError

RUN = """\
#!/bin/sh
[ "$1 $2" = "run --jitconfig" ] || exit 9
[ "$ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE" = 1 ] || exit 9
echo "$3 $(cat .env) $(ls -A | wc -l)" >> {log}
touch left-behind
{then}
"""


WAITS = Waits(quick=0, pause=0.01, longest=0.02, ask=30, gone=300, idle=300, job=300, update=0.1, tries=3)


@dataclass
class Fake:
    """`asked`: what came in, as method, path, whether the token was there, and the body. `busy`: gives what is said of
    a runner, None for one that is gone; `refuses` and `hides`: the code of the answer to everything, and to that."""

    asked: list[tuple[str, str, bool, object]] = field(default_factory=list)
    busy: Callable[[], bool | None] = lambda: False
    refuses: int = 0
    hides: int = 0
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
            looks = self.command == "GET"
            busy = made.busy() if looks else False
            gone = self.command == "DELETE" or busy is None  # GitHub forgets a runner after its job
            answer = {"busy": busy} if looks else {"runner": {"id": 7}, "encoded_jit_config": "config"}
            content = b"{}" if gone else json.dumps(answer).encode()
            self.send_response(made.refuses or (looks and made.hides) or (404 if gone else 201))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_DELETE = do_GET = _answer  # noqa: N815 - the base class calls them so

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
    said: list[str] = field(default_factory=list)
    gpu: Gpu | None = None

    @property
    def log(self) -> list[str]:
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []

    def archive(self, then: str = "") -> None:
        text = RUN.format(log=self.folder / "log", then=then).encode()
        with tarfile.open(self.folder / "actions-runner.tar.gz", "w:gz") as tar:
            entry = tarfile.TarInfo("./bin/Runner.Listener")
            entry.size, entry.mode = len(text), 0o755
            tar.addfile(entry, io.BytesIO(text))

    def serve(self, jobs: int, **changed: float) -> None:
        settings = Settings("owner/name", "h200", ["gpu", "h200"], getpass.getuser())
        slot = Slot(self.folder, self.folder, self.gpu)
        serve(
            settings, self.github, slot, Path("/hook.sh"), say=self.said.append, jobs=jobs,
            waits=replace(WAITS, **changed),
        )  # fmt: skip


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
    assert runner.log == ["config ACTIONS_RUNNER_HOOK_JOB_STARTED=/hook.sh 2"] * 2  # bin and .env, nothing left
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


def test_a_runner_of_one_gpu_of_several(runner: Runner, fake: Fake) -> None:
    runner.gpu = Gpu("1", "GPU-1", "NVIDIA H200", "00000000:2B:00.0")
    runner.archive(f'flock -n "$PWD/../tilestack-GPU-1.lock" true || echo held >> {runner.folder}/log')
    runner.serve(jobs=1)
    settings = "config ACTIONS_RUNNER_HOOK_JOB_STARTED=/hook.sh"
    assert runner.log == [settings, "CUDA_VISIBLE_DEVICES=GPU-1 2", "held"]
    *_, body = fake.asked[0]
    assert isinstance(body, dict) and body["name"].startswith("h200-1-")
    with hold(runner.gpu.lock(runner.folder), "another job"), pytest.raises(DeviceError, match="with another job"):
        runner.serve(jobs=1)
    runner.checks = ["Xid 79"]
    with pytest.raises(DeviceError, match=r"takes no more jobs:.*\n.*\n  next: .*python3 -m ci\.runner back GPU-1"):
        runner.serve(jobs=1)
    assert runner.gpu.reason(runner.folder).is_file() and not (runner.folder / "sick.json").exists()


def test_a_refused_token(runner: Runner, fake: Fake) -> None:
    fake.refuses = 401
    with pytest.raises(ToolchainError, match="GitHub refused POST of a runner for owner/name: 401") as found:
        runner.serve(jobs=1)
    assert "secret" not in f"{found.value!r} {runner.github!r}" and runner.log == []


ONCE = "[ $(wc -l < ../log) = 1 ]"  # true for the first listener of a test


@pytest.mark.parametrize(
    ("code", "said", "hint"),
    [
        (1, "was terminated by an error (1)", "does the repository still take runners"),
        (7, "is too old for GitHub (7)", "raise version, url and sha256 in ci/runner/runner.toml"),
        (9, "ended with 9, which its source does not explain", ""),
    ],
)
def test_a_runner_that_will_never_work_is_removed_and_ends_the_service(
    runner: Runner, fake: Fake, code: int, said: str, hint: str
) -> None:
    runner.archive(then=f"exit {code}")
    with pytest.raises(ToolchainError) as found:
        runner.serve(jobs=5)
    assert said in str(found.value) and hint in str(found.value) and len(runner.log) == 1
    assert fake.registered() == ["POST", "DELETE"] and not (runner.folder / "job").exists()


@pytest.mark.parametrize("code", [2, 6])
def test_an_error_that_may_pass_starts_the_same_runner_again(runner: Runner, fake: Fake, code: int) -> None:
    runner.archive(then=f"{ONCE} && exit {code}; exit 0")
    runner.serve(jobs=1)
    assert len(runner.log) == 2 and fake.registered() == ["POST", "DELETE"]
    assert any("it is started again" in line for line in runner.said)


def test_an_error_that_does_not_pass_is_not_tried_for_ever(runner: Runner, fake: Fake) -> None:
    """As after the registration was deleted: each start ends with 2."""
    runner.archive(then="exit 2")
    with pytest.raises(ToolchainError, match=r"3 runners in a row failed, the last met an error .* \(2\), 3 times"):
        runner.serve(jobs=5)
    assert len(runner.log) == 9 and fake.registered() == ["POST", "DELETE"] * 3


@pytest.mark.parametrize("code", [3, 4])
def test_a_runner_that_updates_itself_is_started_again_when_it_has(runner: Runner, fake: Fake, code: int) -> None:
    update = "(sleep 0.05; touch update.finished) & exit"
    runner.archive(then=f"if {ONCE}; then {update} {code}; fi; exit 0")
    runner.serve(jobs=1, update=60)
    assert len(runner.log) == 2 and fake.registered() == ["POST", "DELETE"]


def test_an_update_that_does_not_end_is_not_waited_for(runner: Runner) -> None:
    runner.archive(then="exit 4")
    with pytest.raises(ToolchainError, match=r"did not end its update in 0\.1 s(.|\n)*runner\.toml"):
        runner.serve(jobs=1)


@pytest.mark.parametrize("then", ["exit 5", "kill -9 $$"])
def test_a_conflict_and_a_killed_runner_are_followed_by_another_one(runner: Runner, fake: Fake, then: str) -> None:
    runner.archive(then=f"{ONCE} && {then}; exit 0")
    runner.serve(jobs=1)
    assert len(runner.log) == 2 and fake.registered() == ["POST", "DELETE"] * 2


def test_there_is_a_pause_after_a_quick_end(runner: Runner) -> None:
    started = time.monotonic()
    runner.serve(jobs=2, quick=300, pause=0.1)
    assert time.monotonic() - started >= 0.2


@pytest.mark.parametrize(
    ("busy", "waits", "said", "before"),
    [
        (None, {"gone": 0.1}, "after GitHub had removed it, and was ended", True),
        (True, {"job": 0.1}, r"had a job for \d+ s, and was ended", False),
        (False, {"idle": 0.1}, r"got no job in \d+ s", True),
    ],
)
def test_no_wait_is_without_an_end(
    runner: Runner, fake: Fake, busy: bool | None, waits: dict[str, float], said: str, before: bool
) -> None:
    """The first listener hangs. What GitHub says of it once it runs is not waited for long, unlike what it says
    `before` that and of the second."""
    fake.busy = lambda: busy if len(runner.log) == fake.registered().count("POST") == 1 else before
    runner.archive(then=f"{ONCE} && exec sleep 600; exit 0")
    started = time.monotonic()
    runner.serve(jobs=1, ask=0.03, **waits)
    assert time.monotonic() - started < 300
    assert len(runner.log) == 2 and any(re.search(said, line) for line in runner.said)
    assert [method for method in fake.registered() if method != "GET"] == ["POST", "DELETE"] * 2


def test_a_github_that_does_not_answer_ends_no_job(runner: Runner, fake: Fake) -> None:
    asked, fake.hides = runner.folder / "asked", 502
    fake.busy = asked.touch  # it is asked, though the answer is refused
    runner.archive(then=f"timeout 60 sh -c 'until [ -e {asked} ]; do sleep 0.01; done'; exit 0")
    runner.serve(jobs=1, ask=0.03)
    assert len(runner.log) == 1 and any("GitHub was asked for the runner: GitHub refused GET" in x for x in runner.said)


def test_the_table_has_every_wait() -> None:
    assert Waits.load().tries == 5


def test_what_a_job_leaves_running_is_ended(runner: Runner) -> None:
    left = runner.folder / "left"
    runs = f'trap "" TERM; echo $$ > {left}; exec sleep 600'
    runner.archive(then=f"sh -c '{runs}' & until [ -s {left} ]; do sleep 0.01; done; exit 0")
    runner.serve(jobs=1)
    assert ends(int(left.read_text()))


def test_the_token_is_nowhere_on_disk(runner: Runner) -> None:
    runner.serve(jobs=1)
    files = [path for path in runner.folder.rglob("*") if path.is_file()]
    assert files and all(b"secret-token" not in path.read_bytes() for path in files)


def test_without_set_up(runner: Runner) -> None:
    (runner.folder / "actions-runner.tar.gz").unlink()
    with pytest.raises(UsageError, match="setup"):
        runner.serve(jobs=1)
