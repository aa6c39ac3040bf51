"""Tests that another project can use the packaged LLVM: mlir-to-ptx links it, parses a module and lowers it to PTX."""

import io
import shutil
import sys
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanException
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout

# GPU targets, each with the first PTX version that knows it.
TARGETS = {"sm_80": "+ptx80", "sm_90a": "+ptx80", "sm_100a": "+ptx86"}


class TestLLVM(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    python_requires = "tilestack_sources/1.0"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def _llvm(self, name):
        return self.dependencies["llvm"].conf_info.get(f"user.llvm:{name}", check_type=str)

    def generate(self):
        toolchain = CMakeToolchain(self, generator="Ninja")
        toolchain.user_presets_path = False  # nothing is written into the checkout
        toolchain.cache_variables["LLVM_DIR"] = f"{self._llvm('prefix')}/lib/cmake/llvm"
        toolchain.cache_variables["MLIR_DIR"] = f"{self._llvm('prefix')}/lib/cmake/mlir"
        toolchain.cache_variables["NVPTX"] = self._nvptx
        self.python_requires["tilestack_sources"].module.use_ccache(self, toolchain)
        toolchain.generate()

    @property
    def _nvptx(self):
        return bool(self.dependencies["llvm"].options.get_safe("nvptx", True))

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def _run(self, *command):
        output = io.StringIO()
        self.run(" ".join(command), output)
        return output.getvalue()

    def test(self):
        if not can_run(self):
            return
        tool, here = str(Path(self.build_folder, "mlir-to-ptx")), Path(self.source_folder)
        text = self._run(tool, "--parse", str(here / "identity.mlir"))
        _want(text, "func.func @identity")
        if self._nvptx:
            for chip, features in TARGETS.items():
                ptx = self._run(tool, str(here / "saxpy.mlir"), chip, features)
                _want(ptx, f".target {chip}", ".entry saxpy", "fma.rn.f32")
        prefix = Path(self._llvm("prefix"))
        for name in ("FileCheck", "not", "split-file", "count", "mlir-tblgen"):
            if not shutil.which(name, path=prefix / "bin"):
                raise ConanException(f"{prefix}/bin/{name} is missing: cuda-tile's own tests call it")
        _want(self._run(sys.executable, self._llvm("lit"), "--version"), "lit ")
        if keep := self.conf.get("user.tilestack:keep_test_tool", check_type=str):
            shutil.copy2(tool, keep)


def _want(text, *parts):
    for part in parts:
        if part not in text:
            raise ConanException(f"{part!r} is not in\n{text[:2000]}")
