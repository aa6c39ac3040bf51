"""Tests that the packaged tools work: a module goes from text to bytecode and back, and through the optimizer if the
version has one."""

import io
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanException
from conan.tools.build import can_run
from conan.tools.cmake import cmake_layout

MAGIC = b"\x7fTileIR\x00"  # the first bytes of Tile IR bytecode


class TestCudaTile(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        # Without a layout Conan writes its generators beside this file, into the checkout, which is read-only.
        cmake_layout(self)

    def _run(self, *command):
        output = io.StringIO()
        self.run(" ".join(str(part) for part in command), output)
        return output.getvalue()

    def test(self):
        if not can_run(self):
            return
        bin_folder = Path(self.dependencies["cuda_tile"].cpp_info.bindirs[0])
        module = Path(self.source_folder, "add.mlir")
        bytecode, optimized = Path(self.build_folder, "add.tilebc"), Path(self.build_folder, "optimized.tilebc")
        version = f"--bytecode-version={'.'.join(str(self.dependencies['cuda_tile'].ref.version).split('.')[:2])}"
        self._run(bin_folder / "cuda-tile-opt", "--no-implicit-module", module, "-o", "/dev/null")
        translate = bin_folder / "cuda-tile-translate"
        self._run(translate, module, "--mlir-to-cudatilebc", "--no-implicit-module", version, "-o", bytecode)
        _want_bytecode(bytecode)
        text = self._run(translate, "--cudatilebc-to-mlir", "--no-implicit-module", bytecode)
        if "entry @add" not in text:
            raise ConanException(f"the module did not come back from bytecode:\n{text[:2000]}")
        if (bin_folder / "cuda-tile-optimize").is_file():  # the recipe checks that versions which should have it do
            # Without --emit-bytecode it writes text.
            self._run(bin_folder / "cuda-tile-optimize", bytecode, "--emit-bytecode", "-o", optimized)
            _want_bytecode(optimized)


def _want_bytecode(path):
    if not path.read_bytes().startswith(MAGIC):
        raise ConanException(f"{path} is not Tile IR bytecode")
