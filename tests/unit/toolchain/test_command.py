from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest

from toolchain import command
from toolchain.contract.sources import packages
from toolchain.errors import UsageError


def raises(error: BaseException) -> Callable[[], Any]:
    def work() -> Any:
        raise error

    return work


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (9, 9)])
def test_the_code_is_what_the_work_returns(returned: int | None, code: int) -> None:
    assert command.run(lambda: returned, set_up="") == code


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("no file x", hint="name another"), 2, "error: no file x\n  next: name another\n"),
        (OSError(28, "No space left on device", "/x"), 1, "error: [Errno 28] No space left on device: '/x'\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_an_error_is_printed(error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(raises(error), set_up="") == code
    assert capsys.readouterr() == ("", said)


@pytest.mark.usefixtures("signals_end_the_process")
@pytest.mark.parametrize(("number", "said"), [(signal.SIGTERM, "terminated\n"), (signal.SIGHUP, "hangup\n")])
def test_a_signal_that_ends_a_process_is_an_exception_of_its_work(
    number: signal.Signals, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cleaned: list[bool] = []

    def work() -> None:
        try:
            signal.raise_signal(number)
        finally:
            cleaned.append(True)

    assert command.run(work, set_up="") == 128 + number
    assert (cleaned, capsys.readouterr()) == ([True], ("", said))
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        assert command.run(lambda: signal.raise_signal(signal.SIGHUP), set_up="") == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_work_that_a_closed_pipe_cuts_off_is_no_success(capfd: pytest.CaptureFixture[str]) -> None:
    assert command.run(raises(BrokenPipeError()), set_up="") == 141
    assert capfd.readouterr() == ("", "")


def test_a_missing_package_is_named_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(raises(ModuleNotFoundError(name="xdsl.ir")), set_up="install it") == 4
    said = capsys.readouterr().err
    assert "needs xdsl.ir" in said
    assert said.endswith("next: install it\n")


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("xdsl.ir", "'tilestack[compile]'"), ("cuda.tile", "'tilestack[compile]'"), ("jinja2", "'tilestack[report]'"),
        ("license_expression", "'tilestack[provenance]'"), ("huggingface_hub", "'tilestack[model]'"),
        ("docker", "'tilestack[native]'"), ("ml_dtypes", "tilestack"), ("cuda.bindings", "tilestack"),
        ("torch", "torch"),
    ],
)  # fmt: skip
def test_an_installed_wheel_names_the_extra(
    module: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "CHECKOUT", False)
    assert command.run(raises(ModuleNotFoundError(name=module)), set_up="nox") == 4
    assert capsys.readouterr().err.endswith(f"next: pip install {said}\n")


@pytest.mark.parametrize(
    "error", [ZeroDivisionError(), *(ModuleNotFoundError(name=f"{name}.nothing") for name in sorted(command.OURS))]
)
def test_a_bug_keeps_its_traceback(error: Exception) -> None:
    with pytest.raises(type(error)):
        command.run(raises(error), set_up="")


def test_every_package_of_ours_is_known_as_ours() -> None:
    assert {*packages().values(), "cute_runtime", "tilestack", "toolchain", "ci"} <= command.OURS
    assert not {"xdsl", "numpy", "docs"} & command.OURS


@pytest.mark.parametrize("error", [UsageError("x"), OSError(), ModuleNotFoundError(name="xdsl")])
def test_an_error_has_its_traceback_where_it_is_asked_for(error: Exception) -> None:
    with pytest.raises(type(error)):
        command.run(raises(error), set_up="", debug=True)


# What nox runs, and a function of each that its work begins with.
MODULES = {
    "ci.reproduce.__main__": "artefacts.load",
    "toolchain.doctor": "checks",
    "toolchain.native.build": "Engine.find",
    "toolchain.native.canary": "Engine.find",
    "toolchain.native.gpu": "Engine.find",
    "toolchain.native.make_images": "Engine.find",
    "toolchain.native.recipes": "build",
    "toolchain.provenance.audit": "audit",
    "toolchain.setup.build": "toolchain_dir",
    "toolchain.setup.update": "update",
}
WORDS = {
    "toolchain.native.build": ["--native"],
    "toolchain.native.canary": ["--llvm", "22.1.8"],
    "toolchain.native.recipes": ["--stack", "13.1", "--llvm", "system", "--work", "w", "--prefix", "p"],
}


@pytest.mark.parametrize(("error", "code"), [(OSError(28, "No space left on device"), 1), (KeyboardInterrupt(), 130)])
@pytest.mark.parametrize("name", MODULES)
def test_whatever_nox_runs_ends_without_a_traceback(
    name: str, error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(f"{name}.{MODULES[name]}", fail)
    monkeypatch.setattr(sys, "argv", [name, *WORDS.get(name, [])])
    assert importlib.import_module(name).main() == code
    said = capsys.readouterr().err
    assert said == ("interrupted\n" if code == 130 else "error: [Errno 28] No space left on device\n")
