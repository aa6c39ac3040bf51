"""What the readers of a checkpoint's keys share: each names a key as its file does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from toolchain.errors import UsageError
from toolchain.tables import is_integer

from ..config import check_sizes

END = "eos_token_id"
# How a text goes on where a key does not change it: what a key's value must be, of `generation_config.json` or of an
# older `config.json`. A key that is not there has the first.
GENERATION: Mapping[str, tuple[object, ...]] = {
    "min_length": (None, 0),
    "min_new_tokens": (None, 0),
    "max_time": (None,),
    "stop_strings": (None, [], ""),
    "forced_bos_token_id": (None,),
    "forced_eos_token_id": (None,),
    "forced_decoder_ids": (None, []),
    "exponential_decay_length_penalty": (None,),
    "suppress_tokens": (None, []),
    "begin_suppress_tokens": (None, []),
    "bad_words_ids": (None, []),
    "force_words_ids": (None, []),
    "constraints": (None, []),
    "sequence_bias": (None, {}, []),
    "no_repeat_ngram_size": (None, 0),
    "encoder_no_repeat_ngram_size": (None, 0),
    "encoder_repetition_penalty": (None, 1),
    "guidance_scale": (None, 1),
    "watermarking_config": (None,),
    "dola_layers": (None,),
    "num_beams": (None, 1),
    "num_beam_groups": (None, 1),
    "diversity_penalty": (None, 0),
    "penalty_alpha": (None, 0),
    "typical_p": (None, 1),
    "min_p": (None, 0),
    "top_h": (None,),
    "epsilon_cutoff": (None, 0),
    "eta_cutoff": (None, 0),
    "token_healing": (None, False),
}
# The same for the mathematics of any decoder in `config.json`.
DECODER: Mapping[str, tuple[object, ...]] = {
    "is_causal": (True,),
    "add_cross_attention": (False, None),
    "is_encoder_decoder": (False, None),
    "pruned_heads": (None, {}),
    "auto_map": (None, {}),  # a model's own code
    "quantization_config": (None,),
    "compression_config": (None,),  # an older name of it
    "quantization": (None,),  # MLX's
}


def json_object(row: object, where: str, hint: str | None) -> dict[str, Any]:
    """Raises UsageError unless a file holds a JSON object."""
    if not isinstance(row, dict):
        raise UsageError(f"{where} does not hold a JSON object", hint=hint)
    return cast("dict[str, Any]", row)


def refuse_variants(row: Mapping[str, Any], usual: Mapping[str, tuple[object, ...]], where: str, model: str) -> None:
    """Raises UsageError for a key whose value is none of the usual ones. `model`: what is computed here."""
    for key, value in row.items():
        if value not in usual.get(key, (value,)):
            first = usual[key][0]
            without = "without it" if first is None else f"with {first!r}"
            raise UsageError(f"{where}: {key} is {shown(value)}; this model is the {model} {without}")


def refuse_generation(row: Mapping[str, Any], where: str) -> None:
    """Raises UsageError for a key by which texts would go on in another way."""
    for key, value in row.items():
        if value not in GENERATION.get(key, (value,)):
            raise UsageError(
                f"{where}: {key} is {shown(value)}, which texts do not follow here",
                hint="texts go on without it if you delete this key",
            )


def spelling(row: Mapping[str, Any], keys: tuple[str, ...], where: str, hint: str) -> str:
    """Which of the keys that mean the same the file has. Raises UsageError if it has none, or two that differ."""
    there = [key for key in keys if key in row]
    if not there:
        raise UsageError(f"{where}: it has no {keys[0]}", hint=hint)
    if any(row[key] != row[there[0]] for key in there):
        both = " and ".join(f"{key} {shown(row[key])}" for key in there)
        raise UsageError(f"{where}: {both} are two values of one size")
    return there[0]


def check_values(
    sizes: Mapping[str, Any], numbers: Iterable[str], spelled: Mapping[str, str], where: str, hint: str
) -> None:
    """Raises UsageError unless the sizes, by their names in a GPTConfig, are those of a model: integers, but for
    `numbers`, which may be fractions."""
    for name, value in sizes.items():
        if name in numbers:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise UsageError(f"{where}: {spelled[name]} is {shown(value)}, which is not a number")
        elif not is_integer(value):
            raise UsageError(f"{where}: {spelled[name]} is {shown(value)}, which is not an integer", hint=hint)
    try:
        check_sizes(sizes, spelled)
    except UsageError as error:
        raise UsageError(f"{where}: {error.args[0]}") from error
    if zero := [spelled[name] for name, value in sizes.items() if value == 0]:
        raise UsageError(f"{where}: {zero[0]} is 0: it must be above 0")  # in a GPTConfig it means: as the others say


def ends(row: Mapping[str, Any], where: str) -> Iterator[int]:
    """The tokens that end a text: one, a list, or none."""
    given = row.get(END)
    for token in cast("list[Any]", given) if isinstance(given, list) else [] if given is None else [given]:
        if not is_integer(token):
            raise UsageError(f"{where}: {END} is {shown(given)}, which is neither a token nor a list of tokens")
        yield token


def in_vocabulary(tokens: Iterable[int], size: int) -> tuple[int, ...]:
    """Those that the model has. Files of models with few tokens often have GPT-2's own 50256: a token that is not there
    ends nothing."""
    return tuple(sorted({token for token in tokens if 0 <= token < size}))


def shown(value: object) -> str:
    """A value on one line, cut if it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:76]} ..."
