"""Who takes launches instead of running them: for programs that keep what a function launches, for another machine."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..arguments.binding import Argument
    from .code import Code


class Recorder(Protocol):
    """`sms`: the multiprocessors that a grid is chosen for."""

    @property
    def sms(self) -> int: ...

    def take(self, code: Code, arguments: Sequence[Argument], grid: tuple[int, int, int]) -> None:
        """A launch whose arguments were checked as for a GPU. Raises LaunchError for what cannot be kept."""
        ...


_current: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


@contextmanager
def recorded_by(recorder: Recorder) -> Generator[None]:
    """Inside the `with`, launches of this thread go to `recorder`, and nothing runs."""
    before = _current.set(recorder)
    try:
        yield
    finally:
        _current.reset(before)


def current() -> Recorder | None:
    return _current.get()
