"""Files that are written whole or not at all: whoever reads one sees the old content or the new, never a part."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A file beside `path` to write to. It takes the place of `path` at once where the block ends well; where it ends
    otherwise, interrupted too, it is gone and `path` is as it was.

    The folder must be there. A link stays, and what it leads to is replaced; what is no plain file, such as
    /dev/stdout, has no place to take and is given itself. Raises OSError.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    path = Path(os.path.realpath(path))
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        beside.touch(exist_ok=False)  # with the permissions of any new file, as mkstemp's are not
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file as `replacing` does; text as UTF-8. Raises OSError."""
    with replacing(path) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
