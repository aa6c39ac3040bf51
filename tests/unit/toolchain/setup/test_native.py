"""[native] of pins.toml and the recipes' data agree, and a stack can be moved, with a mirror of our own."""

from __future__ import annotations

import hashlib
import http.server
import json
import shutil
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from toolchain.errors import ToolchainError, UsageError
from toolchain.pinned import pins
from toolchain.pinned import stacks as stacks_module
from toolchain.pinned.stacks import stacks
from toolchain.setup import native

from ..conftest import Git

MARK = "# The native stacks."


def test_pins_hold_what_is_rendered():
    _, mark, rest = pins.PINS.read_text().partition(MARK)
    assert native.render(stacks()) == mark + rest


def test_each_recipes_data_is_what_is_generated():
    made = native.conandata(stacks())
    assert sorted(path.parent.name for path in made) == ["cuda_tile", "llvm"]
    for path, text in made.items():
        assert path.read_text() == text, f"{path} was edited by hand: run nox -s update_pins"


class Place(NamedTuple):
    """Copies of what a move writes, and a mirror: an archive, a clone with a tag, and that tag's commit and tree."""

    pins: Path
    recipes: Path
    mirror: Path
    sha256: str
    commit: str
    tree: str

    def move(self, *arguments: str) -> None:
        native.move_stack([*arguments, "--source-mirror", str(self.mirror)])

    def written(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in (self.pins, *sorted(self.recipes.rglob("*.yml")))}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: Git) -> Generator[Place]:
    recipes, copy = tmp_path / "third_party", tmp_path / "pins.toml"
    for name in ("llvm", "cuda_tile"):
        (recipes / name).mkdir(parents=True)
        shutil.copy(native.RECIPES / name / "conandata.yml", recipes / name)
    shutil.copy(pins.PINS, copy)
    clone = tmp_path / "mirror/cuda-tile"
    clone.mkdir(parents=True)
    (tmp_path / "mirror/llvm-project-99.1.0.src.tar.xz").write_bytes(b"an archive")
    git(clone, "init", "-q")
    (clone / "file").write_text("text\n")
    git(clone, "add", "file")
    git(clone, "commit", "-q", "-m", "release")
    git(clone, "tag", "-a", "v99.0.1", "-m", "a tag that is an object of its own")
    commit, tree = git(clone, "rev-parse", "HEAD"), git(clone, "rev-parse", "HEAD^{tree}")
    git(clone, "commit", "-q", "--allow-empty", "-m", "after the release")
    for module, name, value in (
        (native, "PINS", copy), (native, "RECIPES", recipes), (stacks_module, "PINS", copy)
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    stacks.cache_clear()
    yield Place(copy, recipes, tmp_path / "mirror", hashlib.sha256(b"an archive").hexdigest(), commit, tree)
    stacks.cache_clear()


def test_a_stack_that_moves_is_pinned_and_the_others_stay(place: Place):
    before, wheels = stacks(), place.pins.read_text().partition(MARK)[0]
    name = before.default
    place.move(name, "--llvm-source", "99.1.0", "--cuda-tile", "99.0.1")
    after = stacks()  # not what was read before the move
    assert after.stack(name).llvm == {"source": "99.1.0", "system": before.stack(name).llvm["system"]}
    assert (after.stack(name).cuda_tile, after.stack(name).suite) == ("99.0.1", before.stack(name).suite)
    (archive,) = after.llvm["99.1.0"]
    assert (archive.sha256, archive.url) == (place.sha256, native.LLVM_URL.format("99.1.0"))
    source = after.cuda_tile["99.0.1"]
    assert (source.url, source.commit, source.tree) == (native.CUDA_TILE_URL, place.commit, place.tree)
    others = [other for other in before.stacks if other != name]
    assert [after.stack(other) for other in others] == [before.stack(other) for other in others]
    assert before.llvm.items() <= after.llvm.items()
    assert before.cuda_tile.items() <= after.cuda_tile.items()
    assert (after.default, after.intervals) == (before.default, before.intervals)
    assert place.pins.read_text() == wheels + native.render(after)


def test_the_recipes_data_moves_along(place: Place):
    place.move(stacks().default, "--llvm-source", "99.1.0", "--cuda-tile", "99.0.1")
    archive = {"sha256": place.sha256, "url": native.LLVM_URL.format("99.1.0")}
    assert _data(place, "llvm")["sources"]["99.1.0"] == {"archives": [archive]}
    assert _data(place, "cuda_tile")["sources"]["99.0.1"]["tree"] == place.tree


def _data(place: Place, recipe: str) -> Any:
    text = (place.recipes / recipe / "conandata.yml").read_text()
    assert text.startswith(native.GENERATED)
    return json.loads(text.removeprefix(native.GENERATED))


def test_patches_are_listed_by_version(place: Place):
    for path in ("1.0/0002-b.patch", "1.0/0001-a.patch", "2.0/0001-c.patch", "2.0/README"):
        (place.recipes / "llvm/patches" / path).parent.mkdir(parents=True, exist_ok=True)
        (place.recipes / "llvm/patches" / path).touch()
    native.write_conandata(stacks())
    assert _data(place, "llvm")["patches"] == {
        "1.0": [{"patch_file": "patches/1.0/0001-a.patch"}, {"patch_file": "patches/1.0/0002-b.patch"}],
        "2.0": [{"patch_file": "patches/2.0/0001-c.patch"}],
    }
    assert _data(place, "cuda_tile")["patches"] == {}


def test_what_is_pinned_is_not_fetched_again(place: Place):
    known = stacks().stack()
    shutil.rmtree(place.mirror)
    before = place.written()
    place.move(known.name, "--llvm-source", known.llvm["source"], "--cuda-tile", known.cuda_tile)
    assert place.written() == before


def test_a_new_stack(place: Place):
    before = stacks()
    place.move(
        "99.0", "--llvm-source", "99.1.0", "--llvm-system", "99.1.2", "--cuda-tile", "99.0.1", "--suite", "forky"
    )  # fmt: skip
    assert list(stacks().stacks) == [*before.stacks, "99.0"]
    assert stacks().stack("99.0").llvm == {"source": "99.1.0", "system": "99.1.2"}
    assert stacks().stack("99.0").suite == "forky"
    assert stacks().default == before.default


NEW = ("--llvm-source", "99.1.0", "--llvm-system", "99.1.2", "--cuda-tile", "99.0.1", "--suite", "forky")


@pytest.mark.parametrize("missing", range(0, len(NEW), 2))
def test_a_new_stack_needs_all(place: Place, missing: int):
    before = place.written()
    with pytest.raises(ToolchainError, match=r"stack 99\.0 is new: it needs all of"):
        place.move("99.0", *NEW[:missing], *NEW[missing + 2 :])
    assert place.written() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--llvm-source", "99.9.9"), r"llvm-project-99\.9\.9\.src\.tar\.xz: no such file(.|\n)*next: it is https"),
        # The first is there, the second is not: neither is written.
        (("--llvm-source", "99.1.0", "--cuda-tile", "99.9.9"), r"refs/tags/v99\.9\.9(.|\n)*--source-mirror"),
    ],
)
def test_nothing_is_written_for_what_the_mirror_lacks(place: Place, arguments: tuple[str, ...], said: str):
    before = place.written()
    with pytest.raises(ToolchainError, match=said):
        place.move(stacks().default, *arguments)
    assert place.written() == before


class _Early(http.server.BaseHTTPRequestHandler):
    """A server that promises ten bytes. For `cut` it sends three, for `none` it closes before it sends anything."""

    def do_GET(self) -> None:
        if "none" not in self.path:
            self.send_response(200)
            self.send_header("Content-Length", "10")
            self.end_headers()
            self.wfile.write(b"123" if "cut" in self.path else b"1234567890")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with http.server.HTTPServer(("127.0.0.1", 0), _Early) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


@pytest.mark.parametrize(("name", "said"), [("cut", "ended after 3 of 10 bytes"), ("none", "closed connection")])
def test_a_download_that_ends_early_is_not_pinned(
    place: Place, server: str, name: str, said: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(native, "LLVM_URL", server + f"/{name}-{{0}}.tar.xz")
    before = place.written()
    with pytest.raises(ToolchainError, match=rf"/{name}-99\.1\.0\.tar\.xz: .*{said}(.|\n)*next: download it yourself"):
        native.move_stack([stacks().default, "--llvm-source", "99.1.0"])
    assert place.written() == before


def test_a_whole_download_is_pinned(place: Place, server: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native, "LLVM_URL", server + "/whole-{0}.tar.xz")
    native.move_stack([stacks().default, "--llvm-source", "99.1.0"])
    (archive,) = stacks().llvm["99.1.0"]
    assert archive.sha256 == hashlib.sha256(b"1234567890").hexdigest()
    assert place.pins.read_text().count(archive.sha256) == 1


@pytest.mark.parametrize("at", [0, 4, 8])  # the stack, --llvm-system, --suite: nothing is fetched for these
@pytest.mark.parametrize("bad", ['9"9', "9\n9", "9\\u0039"])
def test_what_would_spoil_the_pins_is_refused(place: Place, at: int, bad: str):
    before, known = place.written(), stacks().stack()
    words = ["--llvm-source", known.llvm["source"], "--llvm-system", known.llvm["system"]]
    words = ["99.0", *words, "--cuda-tile", known.cuda_tile, "--suite", known.suite]
    words[at] = bad
    with pytest.raises(UsageError, match=r"cannot be written into pins\.toml"):
        place.move(*words)
    assert place.written() == before


def test_pins_without_a_native_part_are_not_written(place: Place):
    known = stacks().default  # read before the damage
    place.pins.write_text("[wheels]\n")
    with pytest.raises(ToolchainError, match="no native stacks in it"):
        place.move(known, "--llvm-source", "99.1.0")
    assert place.pins.read_text() == "[wheels]\n"
