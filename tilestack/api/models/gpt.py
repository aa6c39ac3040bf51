"""GPT: a checkpoint that continues texts and answers. `tilestack generate` is this class on a command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpt.batches.many import Answer, Many
from gpt.config import GPTConfig
from gpt.parameters import one_by_one, weights
from gpt.passes.kv_cache import check_kind
from gpt.sampling import Sampling
from gpt.text import Request, Writer
from gpt.tokens import chat
from gpt.tokens.tokenizer import Tokenizer, decode, load_tokenizer
from toolchain.contract.op import DTYPES
from toolchain.contract.sources import registered
from toolchain.errors import UsageError
from toolchain.runtime import open_executor
from toolchain.runtime.peers import Peers

from ..bundles.kernels import Kernels
from .several import check_devices, open_devices

if TYPE_CHECKING:
    from toolchain.runtime import Executor

TEMPERATURE = 0.7  # unless the caller names another


class Options(TypedDict, total=False):
    """How a text is continued.

    `max_new_tokens`: the most; by default 200, or fewer where the context is full. `stop`: strings before which the
    text ends. `temperature`: 0 takes the likeliest token (default 0.7). `top_k`: only the k likeliest; `top_p`: only
    the likeliest that together reach this probability. `repetition_penalty`: above 1 repeats less. `seed`: of the
    sampling.
    """

    max_new_tokens: int | None
    stop: Sequence[str]
    temperature: float
    top_k: int | None
    top_p: float | None
    repetition_penalty: float
    seed: int


class GPT:
    """A GPT-2, Llama or Qwen3 on the kernels of this repository, on a GPU, or on the interpreter where there is none.

    The kernels that a text takes are compiled when it is first asked for, through the compile cache; those of a bundle
    need no compiler. `config`: its sizes. `tokenizer`: text to tokens and back. Close it, or use it in a `with`, to
    free its memory on the device.
    """

    def __init__(
        self, config: GPTConfig, tensors: weights.Weights, tokenizer: Tokenizer, *, dtype: str = "bf16",
        source: str = "fastest", on: str = "auto", bundle: str | Path | None = None,
        template: chat.ChatTemplate | None = None, devices: int = 1, cache: str = "",
    ) -> None:  # fmt: skip
        """See `from_pretrained`, which reads the first three and the chat template from a checkpoint."""
        if devices != 1:
            check_devices(config, devices, on)
        for what, value, known in (("dtype", dtype, DTYPES), ("source", source, tuple(registered()))):
            if value not in known:
                raise UsageError(f"no {what} {value!r}", hint=f"one of {', '.join(known)}")
        check_kind(cache, dtype)
        if cache and devices != 1:
            raise UsageError(f"a cache in {cache} is of a model on one device", hint="leave out devices or cache")
        self.config, self.tokenizer, self.dtype, self.source, self._cache = config, tokenizer, dtype, source, cache
        self._tensors, self._on, self._template, self._count = tensors, on, template, devices
        self._bundle = None if bundle is None else Path(bundle)
        self._opened = ExitStack()
        self._closed = False

    @classmethod
    def from_pretrained(
        cls, checkpoint: str | Path | None = None, *, dtype: str = "bf16", source: str = "fastest", on: str = "auto",
        bundle: str | Path | None = None, devices: int = 1, quantize: str = "", cache: str = "",
    ) -> Self:  # fmt: skip
        """The model of a checkpoint.

        `checkpoint`: a folder; a GGUF file; "smollm2", which is downloaded the first time; or the name of a model on
        the Hugging Face hub such as "gpt2"; by default the small byte-level GPT that comes with this repository.
        `dtype`: "f32", "tf32" (f32 with products in tf32), "f16" or "bf16". `source`: whose kernels, such as
        "mlir"; "fastest" takes for each op that of "mlir", "py" and "cute" which was measured to be the fastest.
        `on`: "auto", "cpu", "cuda" or "cuda:1". `bundle`: a compiled bundle; without one the kernels are taken from
        `build/bundle`, or compiled. `devices`: how many GPUs share the model, each with some of its heads, its
        vocabulary and its hidden layer; on "cpu", how many ranks the interpreter runs. In a process that torchrun has
        started the number of its processes: each runs one rank, and all give the same text. `quantize`: "f8" or "i8"
        computes the products of a GPT-2 in 8-bit floats or integers, "f8-weights" or "i8-weights" those of any model
        over weights of that kind (see docs/gpt.md); a checkpoint that `tilestack quantize` wrote needs no word of it.
        `cache`: "f8" keeps keys and values in 8-bit floats, in about half the memory.

        Raises UsageError for a checkpoint that is none, or of a model that is not computed here, or not on several
        devices, and ToolchainError for one that cannot be downloaded.
        """
        chosen = weights.SHIPPED if checkpoint is None else checkpoint
        config, tensors, place = weights.load(chosen, dtype) if devices == 1 else one_by_one.load(chosen, dtype)
        if quantize:
            if devices != 1:
                raise UsageError("a quantized model runs on one device", hint="leave out devices or quantize")
            config, tensors = weights.quantized(config, tensors, quantize)
        return cls(
            config, tensors, load_tokenizer(place, config), dtype=dtype, source=source, on=on, bundle=bundle,
            template=chat.load_chat(place), devices=devices, cache=cache,
        )  # fmt: skip

    def request(
        self, prompts: Sequence[str], *, max_new_tokens: int | None = None, stop: Sequence[str] = (),
        sampling: Sampling | None = None,
    ) -> Request:  # fmt: skip
        """What is to be continued, and how, checked before a kernel is compiled or launched. Raises UsageError for a
        prompt that is empty or longer than the context."""
        sampling = sampling or Sampling(TEMPERATURE)
        return Request.of(
            self.config, self.tokenizer, prompts, max_new_tokens=max_new_tokens, sampling=sampling, stop=stop
        )  # fmt: skip

    def answer_request(
        self, messages: Sequence[chat.Message], *, max_new_tokens: int | None = None, stop: Sequence[str] = (),
        sampling: Sampling | None = None,
    ) -> Request:  # fmt: skip
        """The answer to a conversation, as a request that is checked. Raises UsageError for a model without a chat
        template, for messages that are none, and for a conversation longer than the context."""
        if self._template is None:
            raise UsageError(
                "this model has no chat template: it continues texts", hint="give it a prompt, or take smollm2"
            )
        tokens = chat.tokens(self._template, self.tokenizer, messages)
        sampling = sampling or Sampling(TEMPERATURE)
        return Request.answer(
            self.config, tokens, max_new_tokens=max_new_tokens, sampling=sampling, stop=stop
        )  # fmt: skip

    def writer(self, request: Request) -> Writer:
        """Continues the texts of a request together: an iterator over steps, each the new piece of every text."""
        return Writer(self._kernels.model(request), self.tokenizer, request)

    def stream(self, prompt: str, **options: Unpack[Options]) -> Iterator[str]:
        """Yields the continuation of a text in pieces, as they are made, without the text itself. `options`: see
        `Options`.

        Raises UsageError at once for values that make no sense, ToolchainError if kernels have to be compiled and
        there is no compiler.
        """
        writer = self.writer(self._asked([prompt], options))
        return (piece for (piece,) in writer if piece)

    def generate(self, prompt: str, **options: Unpack[Options]) -> str:
        """The continuation of a text, without the text itself. Options and errors are those of `stream`."""
        return "".join(self.stream(prompt, **options))

    def stream_batch(self, prompts: Sequence[str], **options: Unpack[Options]) -> Iterator[list[str]]:
        """Yields the continuations of several texts, which are made side by side: step by step the new piece of each,
        which may be empty. Options and errors are those of `stream`."""
        return iter(self.writer(self._asked(prompts, options)))

    def generate_batch(self, prompts: Sequence[str], **options: Unpack[Options]) -> list[str]:
        """The whole continuations of several texts. Options and errors are those of `stream`."""
        steps = list(self.stream_batch(prompts, **options))
        return ["".join(step[index] for step in steps) for index in range(len(prompts))]

    def many(
        self, prompts: Sequence[str], *, max_new_tokens: int | None = None, stop: Sequence[str] = (),
        sampling: Sampling | None = None,
    ) -> Iterator[Answer]:  # fmt: skip
        """Continues any number of prompts, up to 256 at the same time: yields what became of each once it has ended,
        those that end first, first. Memory is that of the texts there are, not of the longest. A prompt that cannot be
        continued is an `Answer` with an error. Raises UsageError at once for values that make no sense, and for a model
        that several devices share."""
        asked = Many(
            self.tokenizer, prompts, count=max_new_tokens, sampling=sampling or Sampling(TEMPERATURE), stop=stop
        )  # fmt: skip
        return asked.answers(self._kernels.many_model(asked.together))

    def generate_many(self, prompts: Sequence[str], **options: Unpack[Options]) -> list[str]:
        """The whole continuations of any number of prompts. Options and errors are those of `stream`; the error of the
        first prompt that cannot be continued is raised."""
        request, sampling = _split(options)
        answers = sorted(self.many(prompts, sampling=sampling, **request), key=lambda answer: answer.index)
        for answer in answers:
            if answer.error is not None:
                raise answer.error
        return [answer.text for answer in answers]

    def stream_chat(self, messages: Sequence[chat.Message], **options: Unpack[Options]) -> Iterator[str]:
        """Yields the answer to a conversation in pieces, as they are made.

        `messages`: who said what, one after the other, each {"role": "user", "content": "What is a GPU?"}; the roles
        are "system", which may come first, "user" and "assistant". `options`, and errors: as of `stream`; UsageError
        also for a model without a chat template.
        """
        request, sampling = _split(options)
        writer = self.writer(self.answer_request(messages, sampling=sampling, **request))
        return (piece for (piece,) in writer if piece)

    def chat(self, messages: Sequence[chat.Message], **options: Unpack[Options]) -> str:
        """The answer to a conversation: see `stream_chat`."""
        return "".join(self.stream_chat(messages, **options))

    def _asked(self, prompts: Sequence[str], options: Options) -> Request:
        request, sampling = _split(options)
        return self.request(prompts, sampling=sampling, **request)

    def logits(self, tokens: ArrayLike, *, steps: bool = False) -> NDArray[np.float32]:
        """The logits (B, T, V) f32 at every position of tokens (B, T), or (T, V) of one sequence (T,). `steps`: token
        by token through the cache, as a text is continued; not on several devices.

        Raises UsageError for tokens outside the vocabulary, and for more than the context holds.
        """
        given = np.asarray(tokens)
        if given.ndim not in (1, 2) or not given.size or not np.issubdtype(given.dtype, np.integer):
            raise UsageError(f"tokens are integers (T,) or (B, T), at least one; got {given.dtype}{list(given.shape)}")
        batch = np.atleast_2d(given)
        if batch.shape[1] > self.config.n_ctx:
            raise UsageError(f"{batch.shape[1]} tokens are more than the context of {self.config.n_ctx}")
        if steps:
            found = self._kernels.step_model(*batch.shape).step_by_step(batch)
        else:
            found = self._kernels.forward_model(*batch.shape).forward(batch).numpy().astype(np.float32)
        return found[0] if given.ndim == 1 else found

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        return self.tokenizer.encode(text)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens."""
        return decode(self.tokenizer, tokens)

    @property
    def borrowed_ops(self) -> str:
        """The ops that another source's kernels ran, in words; empty if there are none. Of source "fastest": all."""
        return self._kernels.borrowed_ops

    @property
    def executor(self) -> Executor:
        """The device that it runs on, or the first of several, opened when it is first needed. Raises NoGPU and
        DriverTooOld."""
        devices = self._devices
        return devices.executors[0] if isinstance(devices, Peers) else devices

    @property
    def device_names(self) -> str:
        """Of all the devices that it runs on, for people."""
        return self._devices.name

    @cached_property
    def _devices(self) -> Executor | Peers:
        if self._closed:
            raise UsageError("this model is used after it was closed", hint="GPT.from_pretrained() loads another")
        # On a CPU without the sanitizer: what these kernels do was checked, and a text wants speed.
        if self._count == 1:
            return self._opened.enter_context(open_executor(self._on, sanitize=False))
        return self._opened.enter_context(open_devices(self._count, self._on, sanitize=False))

    @cached_property
    def _kernels(self) -> Kernels:
        return Kernels(
            self.source, self.dtype, self._devices, self.config, self._tensors, self._bundle, self._opened, self._cache
        )  # fmt: skip

    def close(self) -> None:
        """Frees what it has on the device. A second call does nothing."""
        self._closed = True
        self._opened.close()
        for name in ("_kernels", "_devices"):
            vars(self).pop(name, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, trace)  # of several processes the others are told
        self.close()

    def __del__(self) -> None:
        if not sys.is_finalizing() and hasattr(self, "_closed"):  # at exit the system frees everything
            self.close()

    def __repr__(self) -> str:
        c = self.config
        sizes = f"{c.n_layer} layers, {c.n_head} heads, width {c.n_embd}, context {c.n_ctx}, vocabulary {c.vocab_size}"
        shared = f" on {self._count} devices" if self._count > 1 else ""
        return f"<GPT of {sizes}; {self.dtype}, source {self.source}{shared}>"


def _split(options: Options) -> tuple[dict[str, Any], Sampling]:
    """The options of a request, and how it draws tokens."""
    how: dict[str, Any] = {"temperature": TEMPERATURE, **options}
    return {name: how.pop(name) for name in ("max_new_tokens", "stop") if name in how}, Sampling(**how)
