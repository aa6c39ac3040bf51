"""The menu: `nox -l`. Each session is a few lines; what it does stands in the module that it runs."""

from __future__ import annotations

import sys

import nox

nox.options.default_venv_backend = "none"  # all sessions share .toolchain/venv
nox.options.sessions = ["tests"]

PYTHON = ".toolchain/venv/bin/python"


@nox.session
def build_toolchain(session: nox.Session) -> None:
    """Make .toolchain/ from requirements.lock, or see in under a second that it is there."""
    session.run(sys.executable, "-m", "toolchain.setup.build")


@nox.session
def update_pins(session: nox.Session) -> None:
    """Resolve the locks and pins anew: `nox -s update_pins -- --upgrade`."""
    session.run(sys.executable, "-m", "toolchain.setup.update", *session.posargs)


@nox.session(requires=["build_toolchain"])
def lint(session: nox.Session) -> None:
    """Style, types and who imports whom."""
    session.run(PYTHON, "-m", "ruff", "check", ".")
    session.run(PYTHON, "-m", "ruff", "format", "--check", ".")
    session.run(PYTHON, "-m", "basedpyright")
    session.run(".toolchain/venv/bin/lint-imports", "--no-logo")


@nox.session(requires=["lint"])
def tests(session: nox.Session) -> None:
    """The whole test suite, after lint; needs no GPU: `nox -s tests -- -k layernorm`."""
    session.run(PYTHON, "-m", "pytest", "-n", "auto", "--require=toolchain", *session.posargs)


@nox.session(requires=["build_toolchain"])
def gpu_tests(session: nox.Session) -> None:
    """Compile both kernel sources and run the conformance matrix on every GPU, or on the CPU where there is none."""
    session.run(PYTHON, "-m", "tilestack", "compile", "--output", "build/bundle")
    session.run(PYTHON, "-m", "tilestack", "matrix", "run", "--bundle", "build/bundle", "--report", "build/report")
