"""Writes the repository that `tilestack init` makes, from template/."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from toolchain.errors import UsageError
from toolchain.files import filling, write_whole

TEMPLATE = Path(__file__).parent / "template"
HIDDEN = ("github", "gitignore")  # without their dot there: a wheel has no hidden files
WORKFLOW = ".github/workflows/own-kernels.yml"


def files(requirement: str, repository: str, ref: str) -> Iterator[tuple[str, str]]:
    """Path and text of each file. `requirement`: where tilestack is, behind its name. `repository`: OWNER/NAME of
    tilestack at GitHub, `ref`: the commit or tag whose workflow is called."""
    words = {
        "@REQUIREMENT@": f"tilestack[compile,report]{requirement}",
        "@GPU_REQUIREMENT@": f"tilestack[report]{requirement}",
        "@WORKFLOW@": f"{repository}/{WORKFLOW}@{ref}",
    }
    for path in sorted(each for each in TEMPLATE.rglob("*") if each.is_file() and "__pycache__" not in each.parts):
        name, text = str(path.relative_to(TEMPLATE)), path.read_text()
        for word, value in words.items():
            text = text.replace(word, value)
        yield f".{name}" if name.startswith(HIDDEN) else name, text


def write(folder: Path, requirement: str, repository: str, ref: str) -> list[str]:
    """Write them to a folder that is empty or not there. Returns their names. Raises UsageError."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty", hint="name a new folder")
    made = list(files(requirement, repository, ref))
    with filling(folder) as scratch:
        for name, text in made:
            write_whole(scratch / name, text, parents=True)
    return [name for name, _ in made]
