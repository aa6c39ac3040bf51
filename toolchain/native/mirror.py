"""Which Debian mirror this machine uses: we name none ourselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import ToolchainError
from ..knobs import DEBIAN_MIRROR, debian_mirror


def mirror(apt: Path = Path("/etc/apt")) -> str:
    """The address in TILESTACK_DEBIAN_MIRROR, or the first of apt's that is of the Debian archive itself.

    Raises ToolchainError where there is none, as on Ubuntu, or where apt's own settings cannot be read.
    """
    if chosen := debian_mirror():
        return chosen.rstrip("/")
    for address in _addresses(apt):
        if re.search(r"/debian/?$", address):
            return address.rstrip("/")
    raise ToolchainError(
        f"no Debian mirror is known: {apt} names none",
        hint=f"name one in {DEBIAN_MIRROR.name}, as http://.../debian",
    )


def _addresses(apt: Path) -> Iterator[str]:
    names = ("sources.list", "sources.list.d/*.list", "sources.list.d/*.sources")  # apt ignores all others
    for path in sorted(path for name in names for path in apt.glob(name)):
        try:
            text = path.read_text(errors="replace")
        except OSError as error:  # one that holds a password, say
            raise ToolchainError(
                f"{path} cannot be read: {error.strerror}", hint=f"name a mirror in {DEBIAN_MIRROR.name}"
            ) from error
        if path.suffix == ".sources":  # deb822 form, sources.list(5)
            for line in re.findall(r"^URIs:(.*)$", text, re.MULTILINE | re.IGNORECASE):
                yield from line.split()
        else:
            yield from re.findall(r"^deb\s+(?:\[[^\]]*\]\s+)?(\S+)", text, re.MULTILINE)
