"""`generate`: write text with a GPT, token by token, or talk with it."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolchain import knobs
from toolchain.command import Terminated
from toolchain.contract.op import DTYPES
from toolchain.contract.sources import registered
from toolchain.errors import TilestackError, UsageError

from .common.options import QUANTIZATIONS, STREAM, command, read_text, seed
from .common.processes import run_processes

if TYPE_CHECKING:
    from gpt.batches.many import Answer
    from gpt.text import Request, Writer
    from gpt.tokens.chat import Message

    from ..api.models.gpt import GPT

EXAMPLES = """\
  tilestack generate "Once"                            with the checkpoint of this repository
  tilestack generate "In the beginning" --temperature 0 --max-new-tokens 60
  tilestack generate "Hello" --checkpoint ~/gpt2 --executor cuda --dtype bf16
  tilestack generate "Once" "In the beginning" --stop "." --repetition-penalty 1.2     several, as one batch
  tilestack generate --file story.txt                  a file; - is standard input, as is a prompt of -
  tilestack generate --prompts questions.txt           a prompt a line, hundreds of them
  tilestack generate --interactive                     continue each line that is typed
  tilestack generate --model smollm2 --chat "What is a GPU?"     a model that answers; downloaded the first time
  tilestack generate "Once" --model gpt2-xl --devices 2            on two GPUs
  tilestack generate "Once" --model gpt2-xl --devices 2 --processes      the same, a process for each
  tilestack generate --model smollm2 --chat            a conversation; /reset begins another
"""
PROMPT = "> "
RESET = "/reset"
PROCESSES = "--processes"


def add(commands: Any) -> None:
    made = command(commands, "generate", generate, "continue a text with a GPT", EXAMPLES)
    made.add_argument(
        "prompt",
        nargs="*",
        metavar="PROMPT",
        help='texts to continue, as one batch (default "Once"); - is standard input',
    )
    made.add_argument(
        "--file", type=Path, action="append", default=[], metavar="FILE",
        help="continue what this file holds, without the line break at its end; repeat",
    )  # fmt: skip
    made.add_argument(
        "--prompts", type=Path, metavar="FILE",
        help="continue each line of this file, as there is room: of any number, of any lengths; - is standard input",
    )  # fmt: skip
    made.add_argument("--interactive", action="store_true", help="continue each line of standard input by itself")
    made.add_argument(
        "--chat", nargs="?", const="", metavar="TEXT",
        help=f"answer this; without it, answer line by line as one conversation, until {RESET}",
    )  # fmt: skip
    made.add_argument("--system", metavar="TEXT", help="with --chat: what the model is told about its part")
    made.add_argument(
        "--model", "--checkpoint", dest="checkpoint", metavar="MODEL",
        help="smollm2, a folder, a GGUF file, or a hub name (default: the one that comes with this repository)",
    )  # fmt: skip
    made.add_argument("--bundle", type=Path, help="a compiled bundle (default build/bundle, or made for this run)")
    made.add_argument(
        "--source", choices=list(registered()), default="fastest",
        help="whose kernels (default fastest: for each op the fastest of mlir, py and cute on this GPU)",
    )  # fmt: skip
    made.add_argument("--executor", default="auto", help="auto, cpu, cuda or cuda:N (default auto)")
    made.add_argument("--devices", type=int, default=1, metavar="N", help="how many GPUs share the model (default 1)")
    made.add_argument(PROCESSES, action="store_true", help="with --devices: one process for each")
    made.add_argument("--dtype", choices=DTYPES, default="bf16", help="default bf16")
    made.add_argument(
        "--quantize", choices=QUANTIZATIONS, default="",
        help="products in 8-bit floats or integers (a GPT-2), or over weights of these alone (any model); rest in bf16",
    )  # fmt: skip
    made.add_argument("--cache", choices=["f8"], default="", help="keys and values in 8-bit floats, in bf16 models")
    made.add_argument(
        "--max-new-tokens", type=int, metavar="N", help="default 200, or fewer where the model's context is full"
    )
    made.add_argument("--temperature", type=float, default=0.7, help="0 takes the likeliest (default 0.7)")
    made.add_argument("--top-k", type=int, metavar="K", help="only the K likeliest")
    made.add_argument("--top-p", type=float, metavar="P", help="only the likeliest that together reach P")
    made.add_argument(
        "--repetition-penalty", type=float, default=1.0, metavar="R", help="above 1 repeats less (default 1)"
    )
    made.add_argument("--seed", type=seed, default=0, help="of the sampling (default 0)")
    made.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end before this text; repeat")


def generate(args: argparse.Namespace) -> int:
    from gpt.sampling import Sampling
    from gpt.text import Until

    from ..api.models.gpt import GPT

    _check(args)
    group = knobs.process_group()
    if args.processes and group is None:
        return run_processes([word for word in args.words[1:] if word != PROCESSES], args.devices)
    sampling = Sampling(args.temperature, args.top_k, args.top_p, args.repetition_penalty, args.seed)
    options = {"dtype": args.dtype, "source": args.source, "on": args.executor, "bundle": args.bundle}
    options |= {"devices": args.devices, "quantize": args.quantize, "cache": args.cache}
    how: dict[str, Any] = {"max_new_tokens": args.max_new_tokens, "sampling": sampling, "stop": args.stop}
    with GPT.from_pretrained(args.checkpoint, **options) as model:
        Until(args.stop)  # refused before a line is read
        if args.prompts is not None:
            return _each_line(model, args, how)
        if group is not None and group.rank > 0:  # the first process shows the text
            _only_write(model, args, how)
        elif args.chat is not None:
            _talk(model, args, how)
        elif args.interactive:
            _answered(model, _typed(lambda line: model.request([line], **how)), lambda _: None)
        else:
            _show(model, model.request(_prompts(args), **how))
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.interactive and (args.prompt or args.file):
        raise UsageError("--interactive reads the prompts line by line", hint="leave out the prompt")
    if args.prompts is not None and (args.prompt or args.file or args.interactive or args.chat is not None):
        raise UsageError("--prompts has all the prompts", hint="leave out the others")
    if args.prompts is not None and args.devices > 1:
        raise UsageError("--prompts runs on one device", hint="leave out --devices")
    if args.chat is not None and (args.interactive or args.prompt or args.file):
        raise UsageError("--chat answers its own text, or lines", hint="leave out the prompt and --interactive")
    if args.system is not None and args.chat is None:
        raise UsageError("--system is a part of a conversation", hint="it takes --chat")
    if args.processes and args.devices < 2:
        raise UsageError(f"{PROCESSES} with 1 device", hint="it takes --devices 2 or more")
    in_lines = args.interactive or args.chat in ("", str(STREAM))
    if (args.processes or knobs.process_group()) and (in_lines or str(STREAM) in (*map(str, args.file), *args.prompt)):
        raise UsageError(
            "several processes cannot read one standard input", hint=f"--devices {args.devices} without {PROCESSES}"
        )


def _only_write(model: GPT, args: argparse.Namespace, how: dict[str, Any]) -> None:
    if args.chat is not None:
        request = model.answer_request(_messages(args), **how)
    else:
        request = model.request(_prompts(args), **how)
    for _ in model.writer(request):
        pass


def _messages(args: argparse.Namespace) -> list[Message]:
    """What --chat TEXT asks."""
    first: list[Message] = [] if args.system is None else [{"role": "system", "content": args.system}]
    return [*first, {"role": "user", "content": args.chat}]


def _talk(model: GPT, args: argparse.Namespace, how: dict[str, Any]) -> None:
    """Answers the text of --chat, or each line of standard input with all that was said before it."""
    first: list[Message] = [] if args.system is None else [{"role": "system", "content": args.system}]
    said = list(first)

    def ask(line: str) -> Request | None:
        if line == RESET:
            said[:] = first
            return None
        asked: Message = {"role": "user", "content": line}
        request = model.answer_request([*said, asked], **how)
        said.append(asked)
        return request

    if args.chat:
        text = _content(STREAM) if args.chat == str(STREAM) else args.chat
        _show(model, model.answer_request([*first, {"role": "user", "content": text}], **how))
    else:
        _answered(model, _typed(ask), lambda text: said.append({"role": "assistant", "content": text}))


def _answered(model: GPT, requests: Iterator[Request], heard: Callable[[str], None]) -> None:
    """Shows the text of each request, and passes it on. An interrupt ends a text, not the conversation."""
    for asked in requests:
        shown: list[str] = []
        try:
            _show(model, asked, shown)
        except Terminated:
            raise
        except KeyboardInterrupt:
            pass
        heard("".join(shown))


def _prompts(args: argparse.Namespace) -> list[str]:
    if (*map(str, args.file), *args.prompt).count(str(STREAM)) > 1:
        raise UsageError("standard input can be read once", hint="name - once")
    given = [_content(STREAM) if text == str(STREAM) else text for text in args.prompt]
    return [*given, *map(_content, args.file)] or ["Once"]


def _content(path: Path) -> str:
    """Without its last line break, which editors and `echo` put there."""
    return read_text(path).removesuffix("\n")


def _typed(request: Callable[[str], Request | None]) -> Iterator[Request]:
    """A request for each line of standard input that makes one. Who types is told what is wrong with a line, and goes
    on."""
    terminal = sys.stdin.isatty()
    for line in filter(None, _lines() if terminal else _piped()):
        try:
            made = request(line)
        except TilestackError as error:
            if not terminal:
                raise
            print(f"error: {error}", file=sys.stderr)
        else:
            if made is not None:
                yield made


def _lines() -> Iterator[str]:
    importlib.import_module("readline")  # with it, lines can be edited and called up again
    with contextlib.suppress(EOFError):
        while True:
            yield input(PROMPT)
    print()


def _piped() -> Iterator[str]:
    for line in sys.stdin.buffer:
        yield line.decode(errors="surrogateescape").removesuffix("\n")


def _show(model: GPT, request: Request, shown: list[str] | None = None) -> None:
    """Prints a request's texts. `shown` gets the new pieces of a single one."""
    writer = model.writer(request)
    started = time.perf_counter()
    if len(request.prompts) == 1:
        _as_it_comes(request.prompts[0], writer, [] if shown is None else shown)
    else:
        _one_by_one(request.prompts, writer)
    seconds = time.perf_counter() - started
    rate = f"{writer.tokens / seconds:.1f} tokens/s" if writer.tokens else "no tokens"
    print(f"{_where(model)}: {rate} ({writer.tokens} in {seconds:.1f} s)", file=sys.stderr)


def _where(model: GPT) -> str:
    """What ran the texts, for people."""
    borrowed = f" ({model.borrowed_ops})" if model.borrowed_ops else ""
    return f"{model.device_names}, source {model.source}, {model.dtype}{borrowed}"


def _each_line(model: GPT, args: argparse.Namespace, how: dict[str, Any]) -> int:
    """Continues the lines of --prompts, and shows them in their order, each once it and those before it have ended. 2
    if one of them could not be continued. An interrupt shows those that have ended."""
    prompts = _content(args.prompts).split("\n")
    done: dict[int, Answer] = {}
    shown = new = 0
    started = time.perf_counter()
    try:
        for answer in model.many(prompts, **how):
            done[answer.index] = answer
            new += answer.tokens
            while shown in done:
                _show_answer(prompts, done[shown])
                shown += 1
    finally:
        for index in sorted(done):
            if index >= shown:
                _show_answer(prompts, done[index])
        seconds = time.perf_counter() - started
        rate = f"{new / seconds:.1f} tokens/s ({new} in {seconds:.1f} s)"
        print(f"{_where(model)}: {len(done)} of {len(prompts)} prompts, {rate}", file=sys.stderr)
    return 2 if any(answer.error is not None for answer in done.values()) else 0


def _show_answer(prompts: Sequence[str], answer: Answer) -> None:
    number = f"{answer.index + 1} of {len(prompts)}"
    if answer.error is not None:
        print(f"error: prompt {number}: {answer.error}", file=sys.stderr, flush=True)
    else:
        print(f"--- {number}\n{prompts[answer.index]}{answer.text}", flush=True)


def _as_it_comes(prompt: str, writer: Writer, shown: list[str]) -> None:
    print(prompt, end="", flush=True)
    try:
        for (piece,) in writer:
            print(piece, end="", flush=True)
            shown.append(piece)
    finally:
        print(flush=True)  # an error begins a line of its own


def _one_by_one(prompts: Sequence[str], writer: Writer) -> None:
    """Texts grow side by side. The first is shown as it grows, each other one once those before it have ended."""
    waiting = [f"--- {number} of {len(prompts)}\n{prompt}" for number, prompt in enumerate(prompts, 1)]
    shown = 0  # the texts before this one are complete
    try:
        for step in chain([[""] * len(prompts)], writer):
            waiting = [text + piece for text, piece in zip(waiting, step, strict=True)]
            while shown < len(prompts):
                print(waiting[shown], end="", flush=True)
                waiting[shown] = ""
                if not writer.ended[shown]:
                    break
                print(flush=True)
                shown += 1
    finally:
        if shown < len(prompts):
            print(flush=True)  # an error begins a line of its own
