"""What `nox -s base_image -- [NAME ...] [--update]` runs: make images, give them to the engine, say their digests."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .. import command
from ..errors import ToolchainError
from ..files import write_whole
from ..knobs import cache_dir
from ..pinned.manifest import REPAIR
from .engine import Engine
from .images import BuiltImage, Image, cached, image, images, make, save


def present(engine: Engine, wanted: Image) -> str | None:
    """The id of the image if the engine has it; None if it would have to be loaded or made."""
    noted = _noted(wanted)
    ids = [wanted.digest, noted.read_text().strip() if noted.is_file() else ""]
    return next((one for one in ids if one and engine.has(one)), None)


def _noted(wanted: Image) -> Path:
    """Where the id of the image that was made is noted: another than images.toml has if the mirror has moved on."""
    return cached(wanted).with_suffix(".digest")


def ensure(engine: Engine, wanted: Image) -> str:
    """The id of the image in the engine: it has it, or the cache has, or it is made now. Says when it is another than
    images.toml has, and why."""
    if there := present(engine, wanted):
        return there
    archive, noted = cached(wanted), _noted(wanted)
    if not (archive.is_file() and noted.is_file()):
        made = make(wanted, archive)
        write_whole(noted, made.digest + "\n")
        report(wanted, made)
    digest = noted.read_text().strip()
    if not engine.has(digest):
        engine.load(archive)
        if not engine.has(digest):
            raise ToolchainError(f"{archive} is not the image {digest}", hint=f"rm {archive} {noted}; run it again")
    return digest


def report(wanted: Image, made: BuiltImage) -> None:
    """Say what was made, and on standard error how it is not what is locked."""
    print(f"{wanted.name}: {made.digest} ({len(made.packages)} packages)", flush=True)
    if made.drift:
        print(f"{wanted.name}: the mirror has moved on from packages.lock:", *made.drift, sep="\n  ", file=sys.stderr)
    elif wanted.digest and made.digest != wanted.digest:
        print(f"{wanted.name}: same packages, but images.toml has {wanted.digest}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="nox -s base_image --")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(images())}; base by default")
    parser.add_argument(
        "--update", action="store_true", help="take the newest packages, write the lock and the digests"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="write NAME.tar there, and load it into no engine")
    args = parser.parse_args(arguments)
    return command.run(lambda: _make_all(args.names or ["base"], update=args.update, output=args.output), set_up=REPAIR)


def _make_all(names: Sequence[str], *, update: bool, output: Path | None) -> None:
    engine = None if output else Engine.find()
    for name in names:
        wanted = image(name)
        start = time.monotonic()
        if update or output:
            # An update asks the mirror alone; otherwise the lock stands.
            nothing_pinned = dict.fromkeys(wanted.pinned, "")
            asked = dataclasses.replace(wanted, locked=(), pinned=nothing_pinned, digest="") if update else wanted
            made = make(asked, (output or cache_dir() / "images") / f"{name}.tar")
            report(asked, made)
            if engine:
                engine.load(made.archive)
            if update:
                save(name, made)
        else:
            assert engine is not None
            ensure(engine, wanted)
        print(f"{name}: ready in {time.monotonic() - start:.0f} s")
    if update:
        print("wrote containers/images.toml and containers/packages.lock")


if __name__ == "__main__":
    sys.exit(main())
