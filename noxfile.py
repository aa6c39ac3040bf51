"""The menu: `nox -l`. Each session is a few lines; what it does stands in the module that it runs."""

from __future__ import annotations

import sys
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).parent))  # nox does not
from toolchain.errors import UsageError
from toolchain.knobs import toolchain_dir

nox.options.default_venv_backend = "none"  # all sessions share the toolchain's
nox.options.sessions = ["tests"]

try:
    BIN = toolchain_dir() / "venv/bin"
except UsageError as error:
    sys.exit(f"error: {error}")
PYTHON = str(BIN / "python")


@nox.session
def build_toolchain(session: nox.Session) -> None:
    """Make .toolchain/ from requirements.lock, or see in under a second that it is there: -- --native: LLVM too."""
    session.run(sys.executable, "-m", "toolchain.setup.build")
    if "--native" in session.posargs:  # not those of a session that requires this one
        session.run(PYTHON, "-m", "toolchain.native.build", *session.posargs)


@nox.session(requires=["build_toolchain"])
def base_image(session: nox.Session) -> None:
    """Make container images and give them to the engine: `nox -s base_image -- llvm-22`."""
    session.run(PYTHON, "-m", "toolchain.native.make_images", *session.posargs)


@nox.session
def update_pins(session: nox.Session) -> None:
    """Resolve the locks and pins anew: `nox -s update_pins -- --upgrade`."""
    session.run(sys.executable, "-m", "toolchain.setup.update", *session.posargs)


@nox.session(requires=["build_toolchain"])
def llvm_canary(session: nox.Session) -> None:
    """Try a stack against other LLVMs: `nox -s llvm_canary -- --stack 13.1 --llvm 22.1.8 --llvm 23.1.4`."""
    session.run(PYTHON, "-m", "toolchain.native.canary", *session.posargs)


@nox.session(requires=["build_toolchain"])
def lint(session: nox.Session) -> None:
    """Style, types, who imports whom, and the workflows."""
    session.run(PYTHON, "-m", "ci.lint")


@nox.session(requires=["build_toolchain"])
def tests(session: nox.Session) -> None:
    """The whole test suite, with lint beside it; needs no GPU: `nox -s tests -- -k layernorm`."""
    plugins = ["-p", "ci.lint_beside_tests"]
    session.run(PYTHON, "-m", "pytest", *plugins, "-n", "auto", "--require=toolchain", *session.posargs)


@nox.session(requires=["build_toolchain"])
def generate(session: nox.Session) -> None:
    """Write text with the small GPT that comes along, on a GPU or the CPU: `nox -s generate -- "In the beginning"`."""
    session.run(PYTHON, "-m", "tilestack", "generate", "--max-new-tokens", "60", *session.posargs)


@nox.session(requires=["build_toolchain"])
def gpu_tests(session: nox.Session) -> None:
    """Compile both kernel sources and run the conformance matrix on every GPU, or on the CPU where there is none.

    Compiled is what this machine can use or check; `tilestack compile --full` compiles everything. `-- --container`
    runs the matrix in the runtime container, which has no compiler; `-- --op linear` and the like are passed on to
    `tilestack matrix run`.
    """
    session.run(PYTHON, "-m", "tilestack", "compile", "--output", "build/bundle")
    options = [option for option in session.posargs if option != "--container"]
    matrix = ["toolchain.native.gpu"] if "--container" in session.posargs else ["tilestack", "matrix", "run"]
    session.run(PYTHON, "-m", *matrix, "--bundle", "build/bundle", "--report", "build/report", *options)


@nox.session(requires=["build_toolchain"])
def new_op(session: nox.Session) -> None:
    """Start a new op in every file that has to know it: `nox -s new_op -- relu`; -- --left: what is not filled in."""
    session.run(PYTHON, "-m", "ci.new_op", *session.posargs)


@nox.session(requires=["build_toolchain"])
def bench(session: nox.Session) -> None:
    """How fast: beside PyTorch on a GPU, else the interpreter and the compiler: `nox -s bench -- cpu`."""
    session.run(PYTHON, "-m", "benchmarks", *session.posargs)


@nox.session(requires=["build_toolchain"])
def audit(session: nox.Session) -> None:
    """Known vulnerabilities of what the locks pin; needs the network."""
    session.run(sys.executable, "-m", "toolchain.provenance.audit")


@nox.session(requires=["build_toolchain"])
def reproduce(session: nox.Session) -> None:
    """Build everything twice under other conditions and compare: `nox -s reproduce -- --target sm_90`."""
    uv = str(Path(sys.executable).parent / "uv")
    session.run(PYTHON, "-m", "ci.reproduce", "--uv", uv, *session.posargs)
