"""Make `.toolchain/`: one virtual environment from requirements.lock, its tools checked against pins.toml.

Run with the Python that the toolchain shall have: `python -m toolchain.setup.build`. Does nothing, fast, if the
toolchain is there and whole; otherwise builds it anew. Runs at once wait for each other; a killed run leaves no
manifest.json, and the next one starts over.
"""

from __future__ import annotations

import functools
import platform
import shutil
import sys
import time
from pathlib import Path

from .. import command, knobs
from ..errors import ToolchainError
from ..files import only_one
from ..knobs import ROOT, toolchain_dir
from ..pinned.manifest import Manifest, check_tool, identity, site_packages, survey
from ..pinned.pins import pins
from .uv import LINE, uv

LOCK = ROOT / "requirements.lock"


def unfit(folder: Path) -> str | None:
    """Why the toolchain in `folder` cannot be used as it stands, or None if it can."""
    try:
        manifest = Manifest.load(folder)
        if manifest.identity != identity(platform.python_version()):
            return "the lock, the pins, Python or the checkout's place changed"
        for name in pins().tools:
            check_tool(folder, manifest, name)
        if not (folder / "venv/bin/python").exists():
            return f"{folder}/venv/bin/python: missing"
    except ToolchainError as error:
        return str(error.args[0])
    return None


def build(folder: Path, lock: int) -> Manifest:
    """Make the toolchain in `folder` and return its manifest. Raises ToolchainError if a package cannot be had or a
    tool is not the pinned one. `lock`: the descriptor of the folder's lock, which uv holds too: it outlives us if we
    are killed, and would write into what the next build makes."""
    Manifest.path(folder).unlink(missing_ok=True)
    if (folder / "venv").exists():
        shutil.rmtree(folder / "venv")
    python = str(folder / "venv/bin/python")
    run = functools.partial(uv, cwd=ROOT, keep_open=[lock])
    run(["venv", "-q", "--python", sys.executable, str(folder / "venv")], doing="making the environment")
    links = ["--link-mode", knobs.link_mode()]
    sync = ["pip", "sync", "--require-hashes", "--no-build", *links, "--python", python, str(LOCK)]
    run(sync, doing="installing requirements.lock")
    try:
        tools = survey(folder, site_packages(folder))
    except ToolchainError as error:  # uv's cache itself is damaged: go past it, once
        print(f"{error.args[0]}\ninstalling again without uv's cache", file=sys.stderr, flush=True)
        run([*sync, "--no-cache", "--reinstall"], doing="installing requirements.lock without a cache")
        tools = survey(folder, site_packages(folder))
    ours = ["pip", "install", "-q", "--no-deps", "--no-index", "--python", python, "--editable", str(ROOT)]
    run(ours, doing="adding this checkout to the environment")
    version = platform.python_version()
    manifest = Manifest(identity(version), version, tools)
    manifest.save(folder)
    return manifest


def main() -> int:
    return command.run(_main, set_up=LINE)


def _main() -> None:
    start = time.monotonic()
    folder = toolchain_dir()
    with only_one(folder, "the toolchain") as lock:
        if (reason := unfit(folder)) is None:
            print(f"toolchain ready in {folder}")
            return
        print(f"building the toolchain in {folder} ({reason}); the first time downloads about 0.7 GB", flush=True)
        build(folder, lock)
    print(f"toolchain built in {folder} in {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
