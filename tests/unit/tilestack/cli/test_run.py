"""`tilestack run`: somebody's program in a process of its own, its kernels on the interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.knobs import ROOT

KERNELS = """
import sys
import numpy as np
import cuda.tile as ct

@ct.kernel
def double(x, y):
    ct.store(y, index=(ct.bid(0),), tile=2 * ct.load(x, index=(ct.bid(0),), shape=(16,)))

@ct.kernel
def add_all(xs, y):
    total = ct.zeros((16,), ct.float32)
    for i in range(len(xs)):
        total += ct.load(xs[i], index=(0,), shape=(16,))
    ct.store(y, index=(0,), tile=total)

@ct.kernel
def total(x, y):
    tile = ct.load(x, index=(0,), shape=(16,))
    ct.store(y, index=(0,), tile=ct.sum(tile, axis=0, keepdims=True))

@ct.kernel
def meet(x, y):
    tile = ct.load(x, index=(ct.bid(0),), shape=(16,))
    ct.store(y, index=(0,), tile=tile)  # here
"""
X = "x = np.arange(64, dtype=np.float32)\n"


def run(folder: Path, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program)
    words = [sys.executable, "-m", "tilestack", "run", *options, str(folder / "program.py"), "own"]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.needs("interpreter")
def test_arrays_of_numpy_their_views_and_lists_of_them(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        KERNELS + X + "y = np.zeros(64, np.float32)\n"
        "ct.launch(0, (4,), double, (x, y))\n"
        "assert (y == 2 * x).all() and sys.argv[1:] == ['own']\n"
        "ct.launch(0, (1,), add_all, ([x[:16], x[16:32], x[32:48]], y[:16]))\n"
        "print(y[:3])\n",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[48. 51. 54.]\n", "")


@pytest.mark.needs("interpreter")
def test_undefined_behaviour_ends_with_8_and_the_kernels_line(tmp_path: Path) -> None:
    done = run(tmp_path, KERNELS + X + "ct.launch(0, (4,), meet, (x, np.zeros(16, np.float32)))\n")
    assert done.returncode == 8
    lines = done.stderr.splitlines()
    assert lines[-1].startswith("toolchain.errors.SanitizerError: ") and "no token or atomic orders" in lines[-1]
    assert any(line.endswith("in meet") for line in lines[-4:])
    assert "    ct.store(y, index=(0,), tile=tile)  # here" in lines[-4:]
    assert str(ROOT) not in "".join(lines[:-1]).replace(str(tmp_path), "")  # none of our own lines


@pytest.mark.needs("interpreter")
@pytest.mark.parametrize(
    ("options", "code", "said"),
    [((), 0, "no padding value"), (("--padding", "strict"), 8, "SanitizerError"), (("--no-sanitize",), 0, "")],
)
def test_padding(tmp_path: Path, options: tuple[str, ...], code: int, said: str) -> None:
    launch = "ct.launch(0, (1,), total, (np.ones(10, np.float32), y))\n"
    done = run(tmp_path, KERNELS + "y = np.zeros(1, np.float32)\n" + 2 * launch + "print(y)\n", *options)
    assert (done.returncode, done.stdout) == (code, "[10.]\n" if code == 0 else "")
    assert said in done.stderr and done.stderr.count("PaddingWarning") == (1 if options == () else 0)


def test_a_program_imports_its_own_modules_whatever_their_names(tmp_path: Path) -> None:
    for name in ("ci", "gpt", "tune"):
        (tmp_path / f"{name}.py").write_text("mine = True")
    done = run(tmp_path, "import ci, gpt, tune; assert ci.mine and gpt.mine and tune.mine")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("program", "code", "last"),
    [("raise ValueError('its own')", 1, "ValueError: its own"), ("import sys; sys.exit(5)", 5, "")],
)
def test_a_program_keeps_its_traceback_and_exit_code(tmp_path: Path, program: str, code: int, last: str) -> None:
    done = run(tmp_path, program)
    assert done.returncode == code
    assert done.stderr.splitlines()[-1:] == ([last] if last else [])
    assert "runpy" not in done.stderr and "tilestack/" not in done.stderr


def test_no_program_and_no_file_are_bad_input(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tilestack", "run"]
    for given, said in (
        ([], "no program to run"),
        ([str(tmp_path / "none.py")], "there is no file"),
        ([str(tmp_path)], "is a folder without a __main__.py"),
    ):
        done = subprocess.run([*words, *given], capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode == 2 and said in done.stderr


@pytest.mark.needs("torch")
def test_tensors_pose_as_those_of_a_gpu(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        KERNELS + "import torch\n"
        "x = torch.arange(64, dtype=torch.float32, device='cuda')\n"
        "y = torch.zeros(64).cuda()\n"
        "assert x.is_cuda and (x + 1).device == torch.device('cuda', 0) and y.cuda() is y\n"
        "assert not x.cpu().is_cuda and not torch.ones(2).is_cuda and x.cpu() is not x\n"
        "with torch.device('cuda'):\n"
        "    assert torch.ones(2).is_cuda\n"
        "assert torch.nn.Linear(2, 2).cuda().weight.is_cuda\n"
        "assert torch.cuda.get_device_capability() == (9, 0)\n"
        "sparse = x.to_sparse()\n"
        "try:\n"
        "    sparse.data_ptr()\n"
        "except RuntimeError:\n"
        "    pass  # and nothing remembers it\n"
        "ct.launch(torch.cuda.current_stream(), (4,), double, (x, y))\n"
        "torch.testing.assert_close(y, 2 * x)\n"
        "try:\n"
        "    ct.launch(torch.cuda.current_stream(), (4,), double, (x.cpu(), y))\n"
        "except ValueError as error:\n"
        "    print(error)\n"
        "torch.cuda.CUDAGraph()\n",
        "--target", "sm_90",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "Input array is not on a CUDA device\n"), done.stderr
    assert "a CUDA graph cannot be captured" in done.stderr
