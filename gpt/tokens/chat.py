"""Conversations: messages to the text that a model was trained to answer, by the chat template that comes with it.

A template is a program in Jinja. It runs in jinja2's sandbox, with what transformers gives it beside the messages: the
special tokens, `raise_exception` and `strftime_now`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict, cast

from toolchain.errors import UsageError

from ..files.gguf import read_header
from ..files.keys import json_object, shown
from ..files.stored import is_gguf, read_json
from .gguf_tokenizer import special
from .tokenizer import Tokenizer

ROLES = ("system", "user", "assistant")
FILE, SETTINGS = "chat_template.jinja", "tokenizer_config.json"  # in a folder of Hugging Face's; the second is older
_GGUF = "tokenizer.chat_template"
_TOKENS = ("bos", "eos")


class Message(TypedDict):
    """What somebody said. `role`: system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True)
class ChatTemplate:
    """`source`: its text, `where` it stands. `tokens`: the special tokens by what templates call them, `bos_token`."""

    source: str
    where: str
    tokens: Mapping[str, str]

    def text(self, messages: Sequence[Message]) -> str:
        """The conversation as text, up to where the assistant's answer begins. Raises UsageError for messages that are
        none, and for a template that refuses them or is damaged."""
        check(messages)
        jinja2, environment = _environment(self.where)
        try:
            template = environment.from_string(self.source)
            return template.render(messages=list(messages), add_generation_prompt=True, **self.tokens)
        except jinja2.exceptions.TemplateError as error:
            raise UsageError(f"{self.where}: the chat template says: {error}") from error
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise UsageError(f"{self.where}: the chat template fails: {error}") from error  # a program of somebody's


def load_chat(place: Path) -> ChatTemplate | None:
    """The chat template of a checkpoint, a GGUF file or a folder; None if it has none. Raises UsageError."""
    return _of_gguf(place) if is_gguf(place) else _of_folder(place)


def tokens(template: ChatTemplate, tokenizer: Tokenizer, messages: Sequence[Message]) -> list[int]:
    """The tokens of a conversation. The template writes the token that a text begins with, if there is one."""
    return tokenizer.encode(template.text(messages), begin=False)


def check(messages: Sequence[Message]) -> None:
    """Raises UsageError unless these are messages, the last of them one to be answered."""
    if isinstance(messages, str) or not messages:
        raise UsageError(f"a conversation is a list of messages, not {shown(messages)}")
    for message in messages:
        if set(message) != {"role", "content"} or not all(isinstance(part, str) for part in message.values()):
            raise UsageError(f"a message has a role and a content, both texts, not {shown(message)}")
        if message["role"] not in ROLES:
            raise UsageError(f"nobody's role is {message['role']!r}", hint=f"one of {', '.join(ROLES)}")
    if messages[-1]["role"] == "assistant":
        raise UsageError("the last message is the assistant's: there is nothing to answer")


def _of_gguf(path: Path) -> ChatTemplate | None:
    file = read_header(path)
    source = file.keys.get(_GGUF)
    if source is None:
        return None
    if not isinstance(source, str):
        raise UsageError(f"{path}: {_GGUF} is {shown(source)}, which is not a text")
    return ChatTemplate(source, str(path), {f"{name}_token": special(file, name) or "" for name in _TOKENS})


def _of_folder(folder: Path) -> ChatTemplate | None:
    file, place = folder / FILE, folder / SETTINGS
    settings = json_object(read_json(place), str(place), "is it a tokenizer's?") if place.exists() else {}
    if file.exists():
        try:
            source: object = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UsageError(f"{file} cannot be read: {error}") from error
    else:
        source, file = settings.get("chat_template"), place
        if isinstance(source, list):  # several by name
            rows = [json_object(row, f"{place}: chat_template", None) for row in cast("list[Any]", source)]
            source = next((row.get("template") for row in rows if row.get("name") == "default"), None)
    if source is None:
        return None
    if not isinstance(source, str):
        raise UsageError(f"{file}: chat_template is {shown(source)}, which is not a text")
    return ChatTemplate(source, str(file), {f"{name}_token": _token(settings, f"{name}_token") for name in _TOKENS})


def _token(settings: Mapping[str, Any], key: str) -> str:
    """A special token: a text, or an object that has it as its content; none as an empty text."""
    given = settings.get(key)
    content = cast("dict[str, Any]", given).get("content") if isinstance(given, dict) else given
    return content if isinstance(content, str) else ""


def _environment(where: str) -> tuple[Any, Any]:
    """jinja2, and what a template runs in."""
    try:
        import jinja2
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError as error:
        raise UsageError(f"the chat template of {where} needs `jinja2`", hint="pip install jinja2") from error

    def refuse(message: str) -> None:
        raise jinja2.exceptions.TemplateError(message)

    def as_json(value: object, indent: int | None = None) -> str:  # jinja2's own writes for HTML
        return json.dumps(value, ensure_ascii=False, indent=indent)

    def now(form: str) -> str:
        return datetime.now().strftime(form)

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    made.filters["tojson"] = as_json
    functions: dict[str, Any] = made.globals
    functions.update(raise_exception=refuse, strftime_now=now)
    return jinja2, made
