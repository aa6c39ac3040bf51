"""Skips are by capability, declared, counted and shown; any other skip is a failure.

A test that needs more than Python and the packages says so: `@pytest.mark.needs("toolchain")`. It is skipped where the
capability is missing, with the reason, unless the run declares that it is there: `pytest --require=toolchain`.
`pytest.skip`, `pytest.mark.skip`, `skipif` and `importorskip` are errors.

A test that takes minutes says so: `@pytest.mark.long("why, and what stands in for it")`. It runs with `pytest --all`,
and is else left out and counted.
"""

from __future__ import annotations

import functools
import gc
import importlib.util
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Generator

import pytest

PROPERTY = "missing capability"
LONG = "time (--all runs them)"


def _toolchain() -> str | None:
    from toolchain.errors import ToolchainError
    from toolchain.pinned.tools import tool

    try:
        tool("tileiras")
    except ToolchainError as error:
        return str(error)
    return None


def _gpu() -> str | None:
    from toolchain.errors import DeviceError
    from toolchain.runtime import gpus

    try:
        return None if gpus() else "no GPU"
    except DeviceError as error:
        return str(error)


def _two_gpus() -> str | None:
    from toolchain.runtime import gpus

    return _gpu() or (None if len(gpus()) > 1 else "only one GPU")


def _engine() -> str | None:
    from toolchain.errors import ToolchainError
    from toolchain.native.engine import Engine

    try:
        Engine.find()
    except ToolchainError as error:
        return str(error)
    return None


def _llvm_images() -> str | None:
    from toolchain.native.engine import Engine
    from toolchain.native.images import image
    from toolchain.native.make_images import present
    from toolchain.pinned.stacks import stacks

    if reason := _engine():
        return reason
    names = [f"llvm-{stack.series}" for stack in stacks().stacks.values()]
    missing = [name for name in names if not present(Engine.find(), image(name))]
    return f"the engine lacks an image: nox -s base_image -- {' '.join(missing)}" if missing else None


def _native() -> str | None:
    from toolchain.errors import ToolchainError
    from toolchain.native.tools import NativeToolchain

    try:
        found = NativeToolchain.find()
    except ToolchainError as error:
        return str(error)
    return None if found.image == "here" else _engine()


def _cuda_tile() -> str | None:
    from toolchain.native.tools import NativeToolchain

    return _native() or (None if NativeToolchain.find().has("cuda-tile-opt") else "built with --only-llvm")


def _interpreter() -> str | None:
    return None if importlib.util.find_spec("xdsl") else "xdsl, which the CPU interpreter needs, is not installed"


def _torch() -> str | None:
    return None if importlib.util.find_spec("torch") else "PyTorch is not installed"


def _transformers() -> str | None:
    return _torch() or (None if importlib.util.find_spec("transformers") else "transformers is not installed")


def _compressed_tensors() -> str | None:
    found = importlib.util.find_spec("compressed_tensors")
    return _transformers() or (None if found else "compressed-tensors is not installed")


def _gguf() -> str | None:
    return None if importlib.util.find_spec("gguf") else "gguf is not installed"


def _cupy() -> str | None:
    return None if importlib.util.find_spec("cupy") else "CuPy is not installed"


# What a test may need, and a function that says what is missing, or None.
CAPABILITIES: dict[str, Callable[[], str | None]] = {
    "toolchain": functools.cache(_toolchain),
    "interpreter": functools.cache(_interpreter),
    "gpu": functools.cache(_gpu),
    "two-gpus": functools.cache(_two_gpus),
    "engine": functools.cache(_engine),
    "mmdebstrap": lambda: None if shutil.which("mmdebstrap") else "mmdebstrap is not installed",
    "llvm-images": functools.cache(_llvm_images),
    "native": functools.cache(_native),
    "cuda-tile": functools.cache(_cuda_tile),
    "g++": lambda: None if shutil.which("g++") else "g++ is not installed",
    "clang": lambda: None if shutil.which("clang++") else "clang++ is not installed",
    "cmake": lambda: None if shutil.which("cmake") else "cmake is not installed",
    "chromium": lambda: None if shutil.which("chromium") else "chromium is not installed",
    "network": lambda: "only with --require=network",
    "torch": functools.cache(_torch),
    "transformers": functools.cache(_transformers),
    "compressed-tensors": functools.cache(_compressed_tensors),
    "gguf": functools.cache(_gguf),
    "cupy": functools.cache(_cupy),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require", action="append", default=[], choices=sorted(CAPABILITIES), metavar="CAPABILITY",
        help="a capability that must be there: a test that needs it fails where it is missing",
    )  # fmt: skip
    parser.addoption("--all", action="store_true", help="run the tests marked long too")
    parser.addoption(
        "--bundle", metavar="DIR",
        help="a compiled bundle that the GPU tests launch, for a machine without the compiler",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    gc.set_threshold(50_000, 20, 20)  # else a fifth of the time goes into looks at millions of objects that stay
    if importlib.util.find_spec("hypothesis"):  # a GPU machine has pytest alone
        import hypothesis

        hypothesis.settings.register_profile("no time limits", deadline=None)  # a busy machine is no failure
        hypothesis.settings.load_profile("no time limits")
    config.addinivalue_line("markers", "long(why): takes minutes; only with --all")
    config.addinivalue_line("markers", f"needs(*capabilities): skipped where one is missing: {', '.join(CAPABILITIES)}")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()  # the tests and all modules stay until the end: no collection has to walk them


@pytest.fixture(autouse=True)
def modules_stay() -> Generator[None]:
    """A test that leaves a module forgotten or replaced would fail whichever test comes next: two classes of a name."""
    before = sys.modules.copy()
    yield
    if sys.modules == before:  # thousands of modules in each of thousands of tests: this is quicker
        return
    if lost := [name for name, module in before.items() if sys.modules.get(name) is not module]:
        pytest.fail(f"the test has changed sys.modules for good: {', '.join(lost[:5])}", pytrace=False)


@pytest.fixture
def everything(request: pytest.FixtureRequest) -> bool:
    """Whether a test takes all that there is, and not one of each kind: with --all."""
    return bool(request.config.getoption("--all"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    long = item.get_closest_marker("long")
    if long and not long.args:
        pytest.fail('say why it is long, and what stands in for it: @pytest.mark.long("...")', pytrace=False)
    if long and not item.config.getoption("--all"):
        item.user_properties.append((PROPERTY, LONG))
        pytest.skip(f"takes minutes, runs with --all: {long.args[0]}")
    required: list[str] = item.config.getoption("--require")
    for capability in (name for mark in item.iter_markers("needs") for name in mark.args):
        if capability not in CAPABILITIES:
            pytest.fail(f"no capability {capability!r}: one of {', '.join(CAPABILITIES)}", pytrace=False)
        if capability == "network" and capability in required:
            continue
        if reason := CAPABILITIES[capability]():
            if capability in required:
                pytest.fail(f"{capability} is required by this run but missing: {reason}", pytrace=False)
            item.user_properties.append((PROPERTY, capability))
            pytest.skip(f"needs {capability}: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    declared = any(name == PROPERTY for name, _ in item.user_properties)
    if report.skipped and not hasattr(report, "wasxfail") and not declared:
        _turn_into_failure(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        _turn_into_failure(report)
    return report


def _turn_into_failure(report: pytest.TestReport | pytest.CollectReport) -> None:
    report.outcome = "failed"
    report.longrepr = f'unexpected skip, use @pytest.mark.needs("...") instead: {report.longrepr}'


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped: list[pytest.TestReport] = terminalreporter.stats.get("skipped", [])
    counts = Counter(str(value) for report in skipped for name, value in report.user_properties if name == PROPERTY)
    for capability, count in sorted(counts.items()):
        terminalreporter.write_line(f"skipped for want of {capability}: {count}")
