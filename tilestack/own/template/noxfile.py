import nox

nox.options.default_venv_backend = "none"


@nox.session
def gpu_tests(session: nox.Session) -> None:
    """Check every kernel of matrix.toml, on a GPU, or on the CPU if there is none."""
    session.run("python3", "-m", "tilestack", "check", "matrix.toml", "--report", "build/report", *session.posargs)
