"""Chat templates: where they stand, what they make of messages, and what is said about broken ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gpt.tokens.chat import ChatTemplate, Message, load_chat, tokens
from gpt.tokens.tokenizer import ByteTokenizer
from toolchain.errors import UsageError

from ..gguf_bytes import write

# As SmolLM2 has it, with another system message.
SMOLLM2 = """\
{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
Be kind<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""
ASKED: list[Message] = [{"role": "user", "content": "What is a GPU?"}]
SAID = "<|im_start|>system\nBe kind<|im_end|>\n<|im_start|>user\nWhat is a GPU?<|im_end|>\n<|im_start|>assistant\n"


def template(source: str, **special: str) -> ChatTemplate:
    return ChatTemplate(source, "here", special)


def test_a_question() -> None:
    assert template(SMOLLM2).text(ASKED) == SAID
    assert tokens(template(SMOLLM2), ByteTokenizer(), ASKED) == list(SAID.encode())


def test_a_conversation_with_a_system_message() -> None:
    told: list[Message] = [
        {"role": "system", "content": "Be brief"},
        *ASKED,
        {"role": "assistant", "content": "It is."},
    ]
    found = template(SMOLLM2).text([*told, {"role": "user", "content": "Why?"}])
    assert found.startswith("<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nWhat is a GPU?")
    assert found.endswith("assistant\nIt is.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n")


def test_what_a_template_finds_beside_the_messages() -> None:
    source = (
        "{{ bos_token }}{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}{{ m | tojson }}"
        "{% endfor %}{{ strftime_now('%Y') | length }}  {% if true %}\n{% endif %}\nend"
    )
    asked: list[Message] = [{"role": "user", "content": "<é>"}] * 2
    assert template(source, bos_token="<s>").text(asked) == '<s>{"role": "user", "content": "<é>"}4  end'


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{{ raise_exception('no system messages') }}", "says: no system messages"),
        ("{% for %}", "says: "),
        ("{{ messages[0].content.__class__.__mro__ }}", "says: .*unsafe"),
        ("{{ messages.append(1) }}", "says: .*"),
        ("{{ unknown.thing }}", "says: 'unknown' is undefined"),
        ("{{ 1 / 0 }}", "fails: division by zero"),
        ("{{ range(10**9) | list }}", "fails: Range too big"),
        ("{{ 'a' + 1 }}", "fails: "),
    ],
)
def test_a_template_that_breaks(source: str, said: str) -> None:
    with pytest.raises(UsageError, match=rf"^here: the chat template {said}"):
        template(source).text(ASKED)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], r"a list of messages, not \[\]"),
        ("Hi", "a list of messages, not 'Hi'"),
        ([{"role": "user"}], "a role and a content, both texts"),
        ([{"role": "user", "content": None}], "a role and a content, both texts"),
        ([{"role": "user", "content": "a", "name": "b"}], "a role and a content, both texts"),
        ([{"role": "tool", "content": "a"}], "nobody's role is 'tool'"),
        ([*ASKED, {"role": "assistant", "content": "a"}], "nothing to answer"),
        (["Hi"], "a role and a content, both texts, not 'Hi'"),
    ],
)
def test_messages_that_are_none(messages: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        template(SMOLLM2).text(messages)


def test_where_a_folder_has_its_template(tmp_path: Path) -> None:
    assert load_chat(tmp_path) is None
    settings = {"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False}, "chat_template": "old"}

    def found(row: Any) -> ChatTemplate | None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(row))
        return load_chat(tmp_path)

    special = {"bos_token": "<s>", "eos_token": "</s>"}
    assert found(settings) == ChatTemplate("old", str(tmp_path / "tokenizer_config.json"), special)
    several = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": "y"}]
    one = found({"chat_template": several})
    assert one is not None and one.source == "y" and one.tokens == {"bos_token": "", "eos_token": ""}
    assert found({"bos_token": None}) is None
    for bad in ({"chat_template": 3}, {"chat_template": ["x"]}, []):
        with pytest.raises(UsageError, match=r"tokenizer_config\.json"):
            found(bad)
    found(settings)
    (tmp_path / "chat_template.jinja").write_text("new", encoding="utf-8")
    assert load_chat(tmp_path) == ChatTemplate("new", str(tmp_path / "chat_template.jinja"), special)
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"chat_template\.jinja cannot be read"):
        load_chat(tmp_path)


def test_where_a_gguf_file_has_its_template(tmp_path: Path) -> None:
    keys = {"tokenizer.ggml.tokens": ["a", "<s>"], "tokenizer.ggml.bos_token_id": 1}
    assert load_chat(write(tmp_path / "a.gguf", keys, {})) is None
    path = write(tmp_path / "a.gguf", keys | {"tokenizer.chat_template": "x"}, {})
    assert load_chat(path) == ChatTemplate("x", str(path), {"bos_token": "<s>", "eos_token": ""})
    with pytest.raises(UsageError, match="chat_template is 3, which is not a text"):
        load_chat(write(tmp_path / "a.gguf", keys | {"tokenizer.chat_template": 3}, {}))


def test_without_jinja(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UsageError, match="needs `jinja2`"):
        template(SMOLLM2).text(ASKED)
