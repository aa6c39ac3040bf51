"""Install other releases of the compiler: `python -m toolchain.setup.toolkits [--lock] VERSION…`.

With `--lock` it first writes the hashes of their wheels to toolchain/pinned/toolkits.toml.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .. import command, knobs
from ..errors import ToolchainError
from ..files import folder_beside, write_whole
from ..pinned.pins import file_sha256, pins
from ..pinned.toolkits import PARTS, TABLE, Wheel, place, releases
from .update import read_lock
from .uv import LINE, uv

WHEELS = ("nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm")
HEADER = """\
# Releases of tileiras beside the pinned one, each with the ptxas and the libnvvm of its toolkit: wheels on the package
# index and the sha256 of their files. Written by `nox -s toolkit -- --lock VERSION`. Where a toolkit has no wheel of
# the very same version, it is the newest of the same minor version.
"""


def lock(version: str) -> tuple[Wheel, ...]:
    """The wheels of a release, as the package index has them today."""
    series = version.rpartition(".")[0]
    found: list[Wheel] = []
    for name in WHEELS:
        for wanted in (f"{name}=={version}", f"{name}=={series}.*"):
            try:
                found.append(_lock(name, wanted))
                break
            except ToolchainError:
                if wanted.endswith("*"):
                    raise
    return tuple(found)


def _lock(name: str, wanted: str) -> Wheel:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "in.txt").write_text(wanted + "\n")
        options = ["--no-deps", "--universal", "--python-version", "3.11", "--only-binary", ":all:"]
        uv(["pip", "compile", "-q", "in.txt", *options, "--generate-hashes", "-o", "out.lock"], cwd=folder,
           doing=f"looking for {wanted}")  # fmt: skip
        row = read_lock((folder / "out.lock").read_text())[name]
        return Wheel(name, row.version, tuple(sorted(row.sha256)))


def write(rows: dict[str, tuple[Wheel, ...]]) -> None:
    """Writes the table."""
    lines = [HEADER]
    for version, wheels in sorted(rows.items(), key=lambda row: [int(part) for part in row[0].split(".")]):
        for wheel in wheels:
            hashes = ",\n".join(f'    "{sha256}"' for sha256 in wheel.sha256)
            lines.append(f'["{version}".{wheel.name}]\nversion = "{wheel.version}"\nsha256 = [\n{hashes},\n]\n')
    write_whole(TABLE, "\n".join(lines))
    releases.cache_clear()


def install(version: str) -> Path:
    """Installs a release unless it is there; returns its folder."""
    folder = place(version)
    if folder.exists():
        return folder
    with folder_beside(folder) as scratch:
        fresh = scratch / "new"
        required = [
            f"{wheel.name}=={wheel.version} " + " ".join(f"--hash=sha256:{sha256}" for sha256 in wheel.sha256)
            for wheel in releases()[version]
        ]
        (scratch / "toolkit.lock").write_text("\n".join(required) + "\n")
        options = ["-q", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--link-mode", knobs.link_mode()]
        where = ["--python", sys.executable, "--target", str(fresh), "-r", "toolkit.lock"]
        uv(["pip", "install", *options, *where], cwd=scratch, doing=f"installing tileiras {version}")
        hashes = {name: file_sha256(fresh / pins().tools[name].path) for name in PARTS}
        (fresh / "sha256.json").write_text(json.dumps(hashes, indent=1) + "\n")
        fresh.rename(folder)
    return folder


def main(argv: Sequence[str] | None = None) -> int:
    """Installs the releases; returns an exit code."""
    parser = argparse.ArgumentParser(description="Install other releases of tileiras, ptxas and libnvvm.")
    parser.add_argument("version", nargs="+", help="of tileiras, such as 13.4.92")
    parser.add_argument("--lock", action="store_true", help="write their hashes to pinned/toolkits.toml first")
    args = parser.parse_args(argv)
    return command.run(lambda: _main(args), set_up=LINE)


def _main(args: argparse.Namespace) -> None:
    if args.lock:
        write({**releases(), **{version: lock(version) for version in args.version}})
    for version in args.version:
        print(f"tileiras {version}: {install(version)}")


if __name__ == "__main__":
    sys.exit(main())
