"""The sessions that `nox -l` lists. Each is a few lines and runs a module, which does the work."""

from __future__ import annotations

import sys
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).parent))  # so that our packages can be imported
from toolchain.errors import UsageError
from toolchain.knobs import toolchain_dir

nox.options.default_venv_backend = "none"  # all sessions share the toolchain's environment
nox.options.sessions = ["tests"]

try:
    BIN = toolchain_dir() / "venv/bin"
except UsageError as error:
    sys.exit(f"error: {error}")
PYTHON = str(BIN / "python")


@nox.session
def build_toolchain(session: nox.Session) -> None:
    """Install the toolchain to .toolchain/ unless it is up to date; `-- --native` also builds LLVM and cuda-tile."""
    session.run(sys.executable, "-m", "toolchain.setup.build")
    if "--native" in session.posargs:
        session.run(PYTHON, "-m", "toolchain.native.build", *session.posargs)


@nox.session(requires=["build_toolchain"])
def base_image(session: nox.Session) -> None:
    """Build container images and load them into the container engine: `nox -s base_image -- llvm-22`."""
    session.run(PYTHON, "-m", "toolchain.native.make_images", *session.posargs)


@nox.session
def update_pins(session: nox.Session) -> None:
    """Update lock files and pinned versions: `nox -s update_pins -- --upgrade` takes the newest ones."""
    session.run(sys.executable, "-m", "toolchain.setup.update", *session.posargs)


@nox.session
def toolkit(session: nox.Session) -> None:
    """Install another release of tileiras, ptxas and libnvvm beside the pinned one: `nox -s toolkit -- 13.4.92`."""
    session.run(sys.executable, "-m", "toolchain.setup.toolkits", *session.posargs)


@nox.session(requires=["build_toolchain"])
def llvm_canary(session: nox.Session) -> None:
    """Build a stack with other LLVM versions: `nox -s llvm_canary -- --stack 13.1 --llvm 22.1.8 --llvm 23.1.4`."""
    session.run(PYTHON, "-m", "toolchain.native.canary", *session.posargs)


@nox.session(requires=["build_toolchain"])
def lint(session: nox.Session) -> None:
    """Check style, types, import rules and the GitHub workflows."""
    session.run(PYTHON, "-m", "ci.lint")


@nox.session(requires=["build_toolchain"])
def tests(session: nox.Session) -> None:
    """The whole test suite, with lint beside it; needs no GPU: `nox -s tests -- -k layernorm`."""
    plugins = ["-p", "ci.lint_beside_tests"]
    workers = ["-n", "auto", "--dist", "worksteal"]  # tests that take minutes stand together
    kept = {"PYTHONDONTWRITEBYTECODE": ""}  # or each of some hundred processes would compile all of its modules anew
    session.run(PYTHON, "-m", "pytest", *plugins, *workers, "--require=toolchain", *session.posargs, env=kept)


@nox.session(requires=["build_toolchain"])
def generate(session: nox.Session) -> None:
    """Write text with the small GPT in gpt/checkpoint, on a GPU or the CPU: `nox -s generate -- "In the beginning"`."""
    session.run(PYTHON, "-m", "tilestack", "generate", "--max-new-tokens", "60", *session.posargs)


@nox.session(requires=["build_toolchain"])
def plan(session: nox.Session) -> None:
    """Show which jobs CI runs for a change: `nox -s plan -- --event pull_request --base origin/main`."""
    session.run(PYTHON, "-m", "ci.bench", "check")  # benchmarks that do not exist are not planned
    session.run(PYTHON, "-m", "tilestack", "matrix", "plan", *session.posargs)


@nox.session(requires=["build_toolchain"])
def bundles(session: nox.Session) -> None:
    """Compile build/bundle, and with --base COMMIT also build/before: `nox -s bundles -- --target sm_90`."""
    nox_path = Path(sys.executable).parent / "nox"
    session.run(PYTHON, "-m", "ci.bundles", "--nox", str(nox_path), *session.posargs)


@nox.session(requires=["build_toolchain"])
def gpu_tests(session: nox.Session) -> None:
    """Compile the kernel sources and run the conformance matrix on every GPU, or on the CPU if there is none.

    It compiles the kernels that this machine can use or check, with `-- --op linear` this op's, to a bundle of its own;
    `tilestack compile --full` compiles everything. `-- --container` runs the matrix in the runtime container, which has
    no compiler. Other options are passed on to `tilestack matrix run`.
    """
    words = session.posargs
    code_alone = ["--no-targets"] * (words[:2] == ["--executor", "cpu"])  # the interpreter takes no cubin
    ops = [word for at, word in enumerate(words) if "--op" in words[max(at - 1, 0) : at + 1]]
    bundle = "build/ops-bundle" if ops else "build/bundle"
    session.run(PYTHON, "-m", "tilestack", "compile", *code_alone, *ops, *["--force"] * bool(ops), "--output", bundle)
    options = [option for option in session.posargs if option != "--container"]
    matrix = ["toolchain.native.gpu"] if "--container" in session.posargs else ["tilestack", "matrix", "run"]
    session.run(PYTHON, "-m", *matrix, "--bundle", bundle, "--report", "build/report", *options)


@nox.session
def pool(session: nox.Session) -> None:
    """Run GPU jobs on all GPUs here, one for each at a time: `nox -s pool -- --plan plan.json`; `-- --simulate`."""
    session.run(sys.executable, "-m", "ci.runner", "pool", *session.posargs)


@nox.session(requires=["build_toolchain"])
def suites(session: nox.Session) -> None:
    """Run a test suite of others on our tools, and write its part of docs/suites.md: `nox -s suites -- cutile`."""
    uv = str(Path(sys.executable).parent / "uv")
    session.run(PYTHON, "-m", "ci.suites", "--uv", uv, *session.posargs)


@nox.session(requires=["build_toolchain"])
def new_op(session: nox.Session) -> None:
    """Add a new op's stubs to all files that need it: `nox -s new_op -- relu`; `-- --left` lists unfinished stubs."""
    session.run(PYTHON, "-m", "ci.new_op", *session.posargs)


@nox.session(requires=["build_toolchain"])
def bench(session: nox.Session) -> None:
    """Benchmark against PyTorch on a GPU; without one, the interpreter and the compiler: `nox -s bench -- cpu`."""
    session.run(PYTHON, "-m", "benchmarks", *session.posargs)


@nox.session(requires=["build_toolchain"])
def trends(session: nox.Session) -> None:
    """Make a page of how times changed over nights and machines: `nox -s trends -- build/nights`."""
    session.run(PYTHON, "-m", "ci.trends", *session.posargs)


@nox.session(requires=["build_toolchain"])
def docs_site(session: nox.Session) -> None:
    """Build the documentation as a site in build/site, and check its links: open build/site/index.html."""
    session.run(PYTHON, "-m", "ci.site", *session.posargs)


@nox.session(requires=["build_toolchain"])
def audit(session: nox.Session) -> None:
    """Look for known vulnerabilities in all locked dependencies; needs the network."""
    session.run(sys.executable, "-m", "toolchain.provenance.audit")


@nox.session(requires=["build_toolchain"])
def reproduce(session: nox.Session) -> None:
    """Build everything twice under different conditions and compare: `nox -s reproduce -- --target sm_90`."""
    uv = str(Path(sys.executable).parent / "uv")
    session.run(PYTHON, "-m", "ci.reproduce", "--uv", uv, *session.posargs)


@nox.session(requires=["build_toolchain"])
def release_files(session: nox.Session) -> None:
    """Make what is released: the wheel, packed bundles, SBOMs, provenance: `nox -s release_files -- build/bundle`."""
    session.run(PYTHON, "-m", "ci.release", "--uv", str(Path(sys.executable).parent / "uv"), *session.posargs)


@nox.session(requires=["build_toolchain"])
def support(session: nox.Session) -> None:
    """Compile a sample with each tileiras, for the support table: `nox -s support -- --tileiras 13.5.37`."""
    uv = str(Path(sys.executable).parent / "uv")
    session.run(PYTHON, "-m", "ci.support", "compile", "--uv", uv, *session.posargs)


@nox.session(requires=["build_toolchain"])
def support_page(session: nox.Session) -> None:
    """Make docs/support.md anew, or with --check show how it differs: `nox -s support_page -- build/support/*.json`."""
    session.run(PYTHON, "-m", "ci.support", "page", *session.posargs)


@nox.session(requires=["build_toolchain"])
def workflows(session: nox.Session) -> None:
    """Run a workflow on this machine, as GitHub would: `nox -s workflows -- ci --event pull_request --job docs`."""
    session.run(PYTHON, "-m", "ci.workflows", *session.posargs)
