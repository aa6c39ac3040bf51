"""What a process poses as, and how strict its kernels are run; also as the text of TILESTACK_INTERPRET."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..contract.targets import targets
from ..errors import UsageError
from ..knobs import INTERPRET

if TYPE_CHECKING:  # the interpreter is imported when something is launched
    from ..tileir.interpreter import Padding

DEFAULT_TARGET = "sm_100"
SMS = 132  # multiprocessors: an H100's


@dataclass(frozen=True)
class Settings:
    """`target`: whose compute capability the device has. `sanitize`: trap undefined behaviour. `padding`: what a load
    without a padding value reads outside its tensor. Raises UsageError for an unknown target."""

    target: str = DEFAULT_TARGET
    sanitize: bool = True
    padding: Padding = "zero"

    def __post_init__(self) -> None:
        if self.target not in targets():
            raise UsageError(f"no target {self.target}", hint=f"one of {', '.join(targets())}")
        if self.padding not in ("strict", "zero"):
            raise UsageError(f"padding {self.padding!r}: it is strict or zero")

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability that the device has."""
        return targets()[self.target].compute_capability

    def text(self) -> str:
        """As TILESTACK_INTERPRET has it."""
        return f"target={self.target},sanitize={'on' if self.sanitize else 'off'},padding={self.padding}"


def parse(text: str) -> Settings:
    """The settings that TILESTACK_INTERPRET says: `1` for the usual ones, or any of
    `target=sm_90,sanitize=off,padding=strict`. Raises UsageError."""
    if text == "1":
        return Settings()
    target, sanitize, padding = DEFAULT_TARGET, True, "zero"
    for part in text.split(","):
        match part.strip().split("="):
            case ["target", name]:
                target = name
            case ["sanitize", ("on" | "off") as switch]:
                sanitize = switch == "on"
            case ["padding", ("strict" | "zero") as chosen]:
                padding = chosen
            case _:
                raise UsageError(
                    f"{INTERPRET.name}={text[:80]!r}: {part.strip()!r} says nothing",
                    hint="1, or some of target=sm_90,sanitize=off,padding=strict",
                )
    return Settings(target, sanitize, padding)
