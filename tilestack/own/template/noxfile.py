import nox

nox.options.default_venv_backend = "none"


@nox.session
def gpu_tests(session: nox.Session) -> None:
    """Check every kernel of matrix.toml, on a GPU, or on the CPU if there is none."""
    session.run("python3", "-m", "tilestack", "check", "matrix.toml", "--report", "build/report", *session.posargs)


@nox.session
def record(session: nox.Session) -> None:
    """Compile all that the checks launch, for a machine with a GPU and no compiler: -- --target sm_90"""
    session.run("python3", "-m", "tilestack", "record", "matrix.toml", *session.posargs)
