from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from gpt.config import PRESETS
from gpt.tokens.tokenizer import BytePairTokenizer, ByteTokenizer, decode, load_tokenizer
from toolchain.errors import UsageError
from toolchain.knobs import ROOT

TEXT = "Once, a café: 日本 🙂\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte pair encoding of GPT-2's kind, trained on a few words."""
    encoding = Tokenizer(models.BPE())
    encoding.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    encoding.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )
    encoding.train_from_iterator(["once upon a time there was a time", "once more"], trainer)
    path = tmp_path_factory.mktemp("bpe")
    encoding.save(str(path / "tokenizer.json"))
    return path


def test_bytes() -> None:
    tokens = ByteTokenizer().encode(TEXT)
    assert tokens == list(TEXT.encode())
    assert decode(ByteTokenizer(), tokens) == TEXT


def test_characters_come_whole(folder: Path) -> None:
    for tokenizer in (ByteTokenizer(), BytePairTokenizer.read(folder / "tokenizer.json")):
        pieces = list(tokenizer.stream(tokenizer.encode(TEXT)))
        assert "".join(pieces) == TEXT
        assert "🙂" in pieces
        assert len(pieces) > 8  # as they come, not at the end


def test_text_that_is_not_utf8(folder: Path) -> None:
    for tokenizer in (ByteTokenizer(), BytePairTokenizer.read(folder / "tokenizer.json")):
        with pytest.raises(UsageError, match=r"not valid UTF-8: 'a\\udcff'"):
            tokenizer.encode(os.fsdecode(b"a\xff"))


def test_broken_and_special_tokens() -> None:
    assert decode(ByteTokenizer(), [65, 0xE6, 0x97]) == "A�"
    assert decode(ByteTokenizer(), [0xFF, 65, 256, 66]) == "�AB"


def test_byte_pairs_merge(folder: Path) -> None:
    tokenizer = BytePairTokenizer.read(folder / "tokenizer.json")
    assert len(tokenizer.encode("once upon a time")) < 8
    assert tokenizer.encode("<|endoftext|>") == [tokenizer.end_of_text]


def test_which_tokenizer_a_checkpoint_has(folder: Path, tmp_path: Path) -> None:
    assert isinstance(load_tokenizer(tmp_path, PRESETS["nano"]), ByteTokenizer)
    assert isinstance(load_tokenizer(folder, PRESETS["gpt2"]), BytePairTokenizer)
    with pytest.raises(UsageError, match=r"no tokenizer\.json"):
        load_tokenizer(tmp_path, PRESETS["gpt2"])
    with pytest.raises(UsageError, match="do not belong together"):
        load_tokenizer(folder, PRESETS["nano"])


def test_a_damaged_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(UsageError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path, PRESETS["gpt2"])


def test_a_prompt_is_neither_cut_nor_padded(folder: Path, tmp_path: Path) -> None:
    encoding = Tokenizer.from_file(str(folder / "tokenizer.json"))
    wanted = encoding.encode(TEXT).ids
    for set_up in (lambda: encoding.enable_truncation(4), lambda: encoding.enable_padding(length=99)):
        set_up()
        encoding.save(str(tmp_path / "tokenizer.json"))
        assert BytePairTokenizer.read(tmp_path / "tokenizer.json").encode(TEXT) == wanted
        encoding.no_truncation()


def test_the_locale_does_not_matter(folder: Path) -> None:
    code = (
        "import pathlib, sys; from gpt.tokens.tokenizer import BytePairTokenizer; "
        "print(BytePairTokenizer.read(pathlib.Path(sys.argv[1])).encode('once upon a time'))"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    path = folder / "tokenizer.json"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{BytePairTokenizer.read(path).encode('once upon a time')}\n"
