"""What a run of a workflow sees of its repository: a clone with GitHub's branches, and the document of the event."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.errors import UsageError
from toolchain.files import write_whole

EVENTS = ("pull_request", "push", "schedule", "workflow_dispatch")
NAME = "example/repository"  # OWNER/NAME of the clone, as workflows see it
NUMBER = 7  # of the pull request
MAIN = "refs/heads/main"
TOKEN = "a-token-that-opens-nothing"
PUSHED = ("nights",)  # branches that workflows push to
IDENTITY = ("-c", "user.name=act", "-c", "user.email=act@localhost")


@dataclass(frozen=True)
class Event:
    """What started the run. `ref`: of a push, the full name of a branch or tag. `base`: the commit before, or that a
    pull request is to be merged into. `inputs`: of workflow_dispatch."""

    name: str
    base: str = "HEAD^"
    ref: str = MAIN
    inputs: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if self.name not in EVENTS:
            raise UsageError(f"no event {self.name}", hint=f"one of {', '.join(EVENTS)}")
        if not self.ref.startswith(("refs/heads/", "refs/tags/")):
            raise UsageError(f"{self.ref} is no full name", hint="refs/heads/main, refs/tags/v1.2.3")


@dataclass(frozen=True)
class Repository:
    """The clone in `folder` at `commit`, and the event's document in `event`."""

    folder: Path
    event: Path
    commit: str

    @property
    def environment(self) -> dict[str, str]:
        """With this, git takes the clone for the repository at GitHub."""
        names = (f"https://github.com/{NAME}", f"https://x-access-token:{TOKEN}@github.com/{NAME}")
        found = {"GIT_CONFIG_COUNT": str(len(names))}
        for at, name in enumerate(names):
            found[f"GIT_CONFIG_KEY_{at}"] = f"url.file://{self.folder}.insteadOf"
            found[f"GIT_CONFIG_VALUE_{at}"] = name
        return found

    def keep_pushed(self, folder: Path) -> list[str]:
        """Copies what a workflow pushed to a bare repository. Returns the branches."""
        there = git(self.folder, "for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()
        found = [name for name in PUSHED if name in there]
        for name in found:
            git(self.folder, "push", "--quiet", git_made(folder), f"{name}:{name}")
        return found


def git(folder: Path, *words: str) -> str:
    """What a git command writes. Raises UsageError."""
    line = ["git", *IDENTITY, "-C", str(folder), *words]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"{' '.join(line)}: {done.stderr.strip()}", hint="a shallow clone may lack a commit")
    return done.stdout.strip()


def git_made(folder: Path) -> str:
    """A bare repository, made if need be."""
    if not folder.exists():
        git(folder.parent, "init", "--quiet", "--bare", folder.name)
    return str(folder)


def prepare(source: Path, folder: Path, event: Event) -> Repository:
    """Clone `source` into a new folder, with what is changed there but not committed. Files that git does not know are
    left out. Raises UsageError, also for a base that is no commit."""
    base = git(source, "rev-parse", "--verify", "--quiet", f"{event.base}^{{commit}}")
    commit = git(source, "stash", "create") or git(source, "rev-parse", "HEAD")
    git(source, "clone", "--quiet", "--no-checkout", "--shared", str(source), str(folder))
    git(folder, "fetch", "--quiet", str(source), commit, base)
    for name, value in (
        ("uploadpack.allowAnySHA1InWant", "true"),
        ("remote.origin.url", f"https://github.com/{NAME}"),
    ):
        git(folder, "config", name, value)
    change = event.name == "pull_request"
    branch = "refs/heads/change" if change else event.ref if event.ref.startswith("refs/heads/") else MAIN
    git(folder, "checkout", "--quiet", "--detach", commit)
    git(folder, "update-ref", MAIN, base)
    git(folder, "update-ref", branch, commit)
    git(folder, "update-ref", f"refs/pull/{NUMBER}/merge" if change else event.ref, commit)
    git(folder, "symbolic-ref", "HEAD", branch)
    there = git(source, "for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()
    for name in (name for name in PUSHED if name in there):
        git(folder, "fetch", "--quiet", str(source), f"{name}:{name}")
    document = folder.parent / "event.json"
    write_whole(document, json.dumps(_document(event, commit, base), indent=1))
    return Repository(folder, document, commit)


def _document(event: Event, commit: str, base: str) -> dict[str, Any]:
    """The fields of GitHub's document that workflows read."""
    owner, _, name = NAME.partition("/")
    repository = {"full_name": NAME, "name": name, "owner": {"login": owner}, "default_branch": "main"}
    match event.name:
        case "pull_request":
            head, to = {"ref": "change", "sha": commit}, {"ref": "main", "sha": base}
            more: dict[str, Any] = {"number": NUMBER, "action": "synchronize"}
            more["pull_request"] = {"number": NUMBER, "head": head, "base": to}
        case "push":
            more = {"ref": event.ref, "before": base, "after": commit}
        case "workflow_dispatch":
            more = {"ref": event.ref, "inputs": dict(event.inputs or {})}
        case _:
            more = {"schedule": "0 0 * * *"}
    return {"repository": repository, **more}
