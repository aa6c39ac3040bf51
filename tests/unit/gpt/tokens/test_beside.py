"""The texts beside a checkpoint's weights: a folder's are copied, those of a GGUF file are written, and read alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpt.config import LLAMAS
from gpt.tokens.beside import copy_texts
from gpt.tokens.chat import Message, load_chat
from gpt.tokens.tokenizer import load_tokenizer

from ..gguf_bytes import write
from .test_gguf_tokenizer import TEXTS, keys, level, trained


def test_a_folders_texts_are_copied_and_nothing_else(tmp_path: Path) -> None:
    place, folder = tmp_path / "a", tmp_path / "b"
    place.mkdir()
    folder.mkdir()
    for name in ("tokenizer.json", "generation_config.json", "model.safetensors", "README.md"):
        (place / name).write_text(name)
    copy_texts(place, folder)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        name: name for name in ("tokenizer.json", "generation_config.json")
    }


def test_those_of_a_gguf_file_are_read_alike(tmp_path: Path) -> None:
    template = "{{ bos_token }}{% for m in messages %}{{ m.content }}é{% endfor %}"
    row: dict[str, Any] = keys(trained(level()), "gpt-2") | {"tokenizer.chat_template": template}
    file = write(tmp_path / "a.gguf", row, {})
    folder = tmp_path / "b"
    folder.mkdir()
    copy_texts(file, folder)
    before, after = (load_tokenizer(place, LLAMAS["smollm2"]) for place in (file, folder))
    assert [before.encode(text) for text in TEXTS] == [after.encode(text) for text in TEXTS]
    said: list[Message] = [{"role": "user", "content": "Hello"}]
    for place in (file, folder):
        chat = load_chat(place)
        assert chat is not None and chat.text(said) == "<|im_start|>Helloé"


def test_a_gguf_file_without_a_template(tmp_path: Path) -> None:
    file = write(tmp_path / "a.gguf", keys(trained(level()), "gpt-2"), {})
    copy_texts(file, tmp_path)
    assert load_chat(tmp_path) is None and (tmp_path / "tokenizer.json").exists()
