"""The texts beside a checkpoint's weights: its tokenizer, its chat template, how a text goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from ..files.gguf import read_header
from ..files.stored import GENERATION, is_gguf
from . import gguf_tokenizer
from .chat import FILE, SETTINGS, load_chat
from .tokenizer import TOKENIZER

FILES = (TOKENIZER, SETTINGS, GENERATION, FILE)


def copy_texts(place: Path, folder: Path) -> None:
    """Copies them from a checkpoint, a folder or a GGUF file, to a folder in Hugging Face's layout. Raises UsageError
    for texts of a GGUF file that are damaged, and OSError."""
    if is_gguf(place):
        _write(place, folder)
        return
    for name in FILES:
        if (place / name).is_file():
            shutil.copyfile(place / name, folder / name)


def _write(file: Path, folder: Path) -> None:
    """Those that a GGUF file holds."""
    gguf_tokenizer.encoding(read_header(file)).save(str(folder / TOKENIZER))
    template = load_chat(file)
    if template is None:
        return
    (folder / FILE).write_text(template.source, encoding="utf-8")
    tokens = {name: token for name, token in template.tokens.items() if token}
    (folder / SETTINGS).write_text(json.dumps(tokens, indent=2) + "\n")
