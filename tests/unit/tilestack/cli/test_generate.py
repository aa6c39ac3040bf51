"""generate: where prompts come from, and several of them. What it refuses is in test_commands.py."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from gpt.batches.many import Answer
from gpt.files.stored import WHOLE
from gpt.parameters.weights import SHIPPED
from tilestack.cli.generate import _each_line, _one_by_one
from toolchain.command import Terminated
from toolchain.errors import UsageError

from ..conftest import Ran, Run

if TYPE_CHECKING:
    from gpt.text import Writer

WORDS = ["generate", "--executor", "cpu", "--max-new-tokens", "3", "--temperature", "0"]


@pytest.fixture(autouse=True)
def no_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def type_(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text), encoding="utf-8"))


@pytest.fixture
def alone(run: Run) -> dict[str, str]:
    """What two prompts are continued to, each by itself."""
    return {prompt: run(*WORDS, prompt).out for prompt in ("Once", "In the")}


def test_a_prompt_from_a_file_or_standard_input(
    run: Run, alone: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prompt").write_text("Once\n")
    assert run(*WORDS, "--file", tmp_path / "prompt").out == alone["Once"]
    for words in (["-"], ["--file", "-"]):
        type_(monkeypatch, b"In the\n")
        assert run(*WORDS, *words).out == alone["In the"]
    type_(monkeypatch, b"\xff")
    ran = run(*WORDS, "-")
    assert ran.code == 2 and "standard input is not UTF-8 text: byte 0" in ran.err


def test_several_prompts_are_a_batch(run: Run, alone: dict[str, str]) -> None:
    ran = run(*WORDS, "Once", "In the")
    assert ran.out == f"--- 1 of 2\n{alone['Once']}--- 2 of 2\n{alone['In the']}"
    assert re.search(r"source fastest, bf16 \(all: mlir\): [\d.]+ tokens/s \(6 in [\d.]+ s\)\n", ran.err)


def test_texts_of_a_batch_appear_as_they_grow(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []

    class Steps:
        ended = (False, False, False)

        def __iter__(self) -> Iterator[list[str]]:
            for pieces, ended in (
                (["b", "y", "r"], (False, False, True)),
                (["c", "z", ""], (False, True, True)),
                (["", "", ""], (True, True, True)),
            ):
                shown.append(capsys.readouterr().out)
                self.ended = ended
                yield pieces

    _one_by_one(["a", "x", "q"], cast("Writer", Steps()))
    assert shown == ["--- 1 of 3\na", "b", "c"]  # before each step
    assert capsys.readouterr().out == "\n--- 2 of 3\nxyz\n--- 3 of 3\nqr\n"


def test_an_error_behind_a_part_of_a_batch_begins_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        ended = (False, False)

        def __iter__(self) -> Iterator[list[str]]:
            yield ["b", "y"]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _one_by_one(["a", "x"], cast("Writer", Broken()))
    assert capsys.readouterr().out == "--- 1 of 2\nab\n"


@pytest.mark.parametrize("ends", [32, [256, 32]])
def test_a_text_ends_where_the_checkpoint_says(run: Run, tmp_path: Path, ends: object) -> None:
    (tmp_path / "ending").mkdir()
    (tmp_path / "ending" / WHOLE).symlink_to(SHIPPED / WHOLE)
    config = json.loads((SHIPPED / "config.json").read_text())
    (tmp_path / "ending" / "config.json").write_text(json.dumps(config | {"eos_token_id": ends}))
    assert run(*WORDS, "Once", "--checkpoint", tmp_path / "ending").out == "Once\n"  # its first token is a space


def test_each_line_is_continued_by_itself(run: Run, alone: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    type_(monkeypatch, b"Once\n\nIn the")
    ran = run(*WORDS, "--interactive")
    assert (ran.code, ran.out) == (0, alone["Once"] + alone["In the"])
    assert ran.err.count("tokens/s (3 in") == 2
    type_(monkeypatch, b"In the\n\xff\n")
    ran = run(*WORDS, "--interactive")
    assert (ran.code, ran.out) == (2, alone["In the"]) and "not valid UTF-8" in ran.err


def test_a_typed_line_that_is_refused_ends_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = iter(["x" * 300, "Once"])

    def line(prompt: str) -> str:
        assert prompt == "> "
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", line)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    ran: Ran = run(*WORDS, "--interactive")
    assert ran.code == 0 and ran.out.startswith("Once") and ran.out.endswith("\n\n")
    assert ran.err.startswith("error: 300 tokens and 3 new ones") and "tokens/s" in ran.err


def test_a_long_prompt_gets_as_many_tokens_as_there_is_room_for(run: Run) -> None:
    ran = run("generate", "x" * 254, "--executor", "cpu", "--temperature", "0")
    assert ran.code == 0 and re.search(r"\([12] in ", ran.err)


@pytest.mark.parametrize(("raised", "code", "texts"), [(KeyboardInterrupt, 0, 2), (Terminated, 143, 1)])
def test_an_interrupt_ends_a_text_and_a_signal_everything(
    run: Run, monkeypatch: pytest.MonkeyPatch, raised: type[BaseException], code: int, texts: int
) -> None:
    begun: list[Sequence[str]] = []

    def shown(prompt: str, writer: object, _: object) -> None:
        del writer
        begun.append(prompt)
        if len(begun) == 1:
            raise raised

    monkeypatch.setattr("tilestack.cli.generate._as_it_comes", shown)
    type_(monkeypatch, b"Once\nIn the\n")
    assert run(*WORDS, "--interactive").code == code
    assert begun == ["Once", "In the"][:texts]


@pytest.fixture
def talker(tmp_path: Path) -> Path:
    """The shipped model, with a template by which it "answers"."""
    folder = tmp_path / "talker"
    folder.mkdir()
    for name in (WHOLE, "config.json"):
        (folder / name).symlink_to(SHIPPED / name)
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.role[0] }}:{{ m.content }}|{% endfor %}")
    return folder


def test_a_conversation_is_what_was_said_before_each_line(
    run: Run, talker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def tokens(_: object, messages: Sequence[dict[str, str]], **__: object) -> Any:
        asked.append("|".join(f"{message['role'][0]}:{message['content']}" for message in messages))
        return SimpleNamespace(prompts=[""])

    def writer(_: object, request: object) -> Any:
        del request
        return FakeWriter(["it", " is"])

    monkeypatch.setattr("tilestack.api.models.gpt.GPT.answer_request", tokens)
    monkeypatch.setattr("tilestack.api.models.gpt.GPT.writer", writer)
    type_(monkeypatch, b"a\nb\n\n/reset\nc\n")
    ran = run("generate", "--model", talker, "--chat", "--system", "s", "--executor", "cpu")
    assert (ran.code, ran.out) == (0, "it is\n" * 3)
    assert asked == ["s:s|u:a", "s:s|u:a|a:it is|u:b", "s:s|u:c"]


class FakeWriter:
    tokens = 2

    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[list[str]]:
        return ([piece] for piece in self._pieces)


def test_an_answer_is_what_the_template_is_continued_by(run: Run, talker: Path) -> None:
    wanted = run(*WORDS, "u:Once|").out.removeprefix("u:Once|")
    assert run(*WORDS, "--model", talker, "--chat", "Once").out == wanted


def test_a_line_that_is_too_long_for_the_context_ends_no_conversation(
    run: Run, talker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_(monkeypatch, b"x" * 300)
    ran = run(*WORDS, "--model", talker, "--chat")
    assert ran.code == 2 and "303 tokens and 3 new ones are more than the context of 256" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--chat", "a", "--interactive"], "--chat answers its own text"),
        (["b", "--chat", "a"], "--chat answers its own text"),
        (["--system", "a"], "--system is a part of a conversation"),
        (["--chat", "a"], "this model has no chat template: it continues texts"),
    ],
)
def test_what_a_conversation_is_not(run: Run, words: list[str], said: str) -> None:
    ran = run(*WORDS, *words)
    assert ran.code == 2 and said in ran.err


def test_two_devices_write_what_one_does(run: Run) -> None:
    words = [*WORDS, "--dtype", "f32", "Once"]
    ran = run(*words, "--devices", "2")
    assert ran.out == run(*words).out
    assert "cpu interpreter, rank 0 of 2, cpu interpreter, rank 1 of 2, source fastest, f32 (all: mlir)" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--devices", "0"], "a model on 0 devices"),
        (["--devices", "6"], "5 heads cannot be shared by 6 GPUs"),
        (["--devices", "2", "--executor", "cuda:1"], "2 devices on cuda:1"),
        (["--processes"], "--processes with 1 device"),
        (["--devices", "2", "--processes", "-"], "several processes cannot read one standard input"),
        (["--devices", "2", "--processes", "--interactive"], "several processes cannot read one standard input"),
    ],
)
def test_devices_that_cannot_be(run: Run, words: list[str], said: str) -> None:
    ran = run(*WORDS, *words)
    assert ran.code == 2 and said in ran.err


def test_one_of_several_processes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "3"}.items():
        monkeypatch.setenv(name, value)
    ran = run(*WORDS, "--devices", "2")
    assert ran.code == 2 and "2 devices for the 3 processes of WORLD_SIZE" in ran.err


class Ends:
    """A model whose texts end in this order; it then stops with `error`."""

    device_names, source, dtype, borrowed_ops = "here", "mlir", "f32", ""

    def __init__(self, order: Sequence[int], error: BaseException | None = None) -> None:
        self._order, self._error = order, error

    def many(self, prompts: Sequence[str], **how: Any) -> Iterator[Answer]:
        assert how == {"stop": []}
        for index in self._order:
            empty = UsageError("the prompt is empty") if not prompts[index] else None
            yield Answer(index, "" if empty else f"+{index}", empty, tokens=0 if empty else 2)
        if self._error:
            raise self._error


def test_lines_are_shown_in_their_order_whichever_ends_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that cannot be continued is named, and the others go on."""
    args: Any = SimpleNamespace(prompts=tmp_path / "prompts")
    args.prompts.write_text("a\n\nb\nc\n")
    model: Any = Ends([1, 3, 0, 2])
    assert _each_line(model, args, {"stop": []}) == 2
    ran = capsys.readouterr()
    assert ran.out == "--- 1 of 4\na+0\n--- 3 of 4\nb+2\n--- 4 of 4\nc+3\n"
    assert "error: prompt 2 of 4: the prompt is empty\n" in ran.err
    assert re.search(r"here, source mlir, f32: 4 of 4 prompts, [\d.]+ tokens/s \(6 in [\d.]+ s\)\n", ran.err)
    args.prompts.write_text("a\nb")
    model = Ends([1, 0])
    assert _each_line(model, args, {"stop": []}) == 0


def test_an_interrupt_loses_nothing_that_has_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args: Any = SimpleNamespace(prompts=tmp_path / "prompts")
    args.prompts.write_text("a\nb\nc")
    model: Any = Ends([2, 0], KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        _each_line(model, args, {"stop": []})
    assert capsys.readouterr().out == "--- 1 of 3\na+0\n--- 3 of 3\nc+2\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [(["Once"], "--prompts has all the prompts"), (["--devices", "2"], "--prompts runs on one device")],
)
def test_prompts_of_a_file_come_alone(run: Run, tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "prompts").write_text("Once")
    ran = run("generate", "--prompts", tmp_path / "prompts", *words)
    assert ran.code == 2 and said in ran.err
