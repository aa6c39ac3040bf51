"""A model's passes with and without the picks: which are timed, and the turns."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from toolchain.contract.fastest import Pick
from tune import fastest_model
from tune.fastest_model import Passed, in_passes

BUNDLE: Any = SimpleNamespace(targets=("sm_90",))
LINEAR, NORM, BASE = (
    Pick(op, "all", ("bf16",), source, (), {})
    for op, source in (("linear", "cute"), ("layernorm", "py"), ("gelu", "mlir"))
)
US = {"linear": 4.0, "layernorm": 2.0}  # more of a pass with such a pick


class Device:
    """A clock that each run moves on."""

    now = 0.0

    def record(self) -> Any:
        at = self.now

        def us_since(start: Any) -> float:
            return at - start.at

        return SimpleNamespace(at=at, us_since=us_since)

    def synchronize(self) -> None: ...


def test_passes_are_timed_with_what_they_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    device, said, ran = Device(), list[str](), list[str]()

    @contextmanager
    def opened(name: str) -> Generator[Device]:
        assert name == "cuda"
        yield device

    def chosen(_model: object, _bundle: object, target: str, picks: tuple[Pick, ...]) -> Any:
        assert target == "sm_90"
        return SimpleNamespace(launcher=SimpleNamespace(ran={}), picks=picks)

    def prepare(model: Any) -> Any:
        """Of a pass that launches linear, and no layernorm of this class."""
        for pick in model.picks:
            if pick.op == "linear" or len(model.picks) > 1:
                model.launcher.ran.setdefault(pick.source, set()).add(pick.op)

        def run() -> None:
            ran.append(" ".join(pick.op for pick in model.picks))
            device.now += 10 + sum(US[pick.op] for pick in model.picks)

        return run, lambda: None

    monkeypatch.setattr(fastest_model, "open_executor", opened)

    def anything(*_: object) -> Any:
        return SimpleNamespace(astype=anything)

    monkeypatch.setattr(fastest_model, "_model", anything)
    monkeypatch.setattr(fastest_model, "_with", chosen)
    monkeypatch.setattr(fastest_model, "_passes", lambda: [("forward 1x64", prepare)])
    monkeypatch.setattr(fastest_model, "random_weights", anything)
    found = list(in_passes(BUNDLE, [LINEAR, BASE, NORM], "cuda", "bf16", said.append))
    assert found == [Passed("forward 1x64", "linear", "all", "cute", 14.0, 10.0)] and found[0].is_slower
    assert said == ["forward 1x64: 10 us, with all picks 16", "  with cute's linear all 14, slower"]
    turns = fastest_model.SAMPLES + fastest_model.WARM_UP
    assert [ran.count(name) for name in ("", "linear", "linear layernorm", "layernorm")] == [turns, turns, turns, 0]
    assert len({tuple(ran[at : at + 3]) for at in range(0, len(ran), 3)}) > 1, "their order changes"
