"""LLVM with MLIR: built from a pinned source, or the one that the system has, if it is exactly the pinned version.

From source, only what cuda-tile and our own tools link is built and installed: the libraries in COMPONENTS with all
that they link, as CMake's own export files say, and TOOLS. That is about 1500 build steps, with the NVPTX back end
2900, of 7000.

Who requires it finds the LLVM with `self.dependencies["llvm"].conf_info.get("user.llvm:prefix")` (the folder above
lib/cmake/llvm and lib/cmake/mlir) and lit with `user.llvm:lit`.
"""

import re
import subprocess
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanException, ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import apply_conandata_patches, chdir, copy, export_conandata_patches, save, trim_conandata

required_conan_version = ">=2.20"

# What cuda-tile's libraries and tools link.
COMPONENTS = (
    "LLVMAsmParser",
    "LLVMTableGen",
    "MLIRBytecodeWriter",
    "MLIRCAPIIR",
    "MLIRFuncDialect",
    "MLIRIR",
    "MLIRInferTypeOpInterface",
    "MLIROptLib",
    "MLIRParser",
    "MLIRSideEffectInterfaces",
    "MLIRTableGen",
    "MLIRTransforms",
    "MLIRTranslateLib",
    "MLIRViewLikeInterface",
)
# What takes a module in the LLVM and NVVM dialects to PTX.
NVPTX_COMPONENTS = (
    "LLVMNVPTXCodeGen",
    "LLVMNVPTXDesc",
    "LLVMNVPTXInfo",
    "MLIRBuiltinToLLVMIRTranslation",
    "MLIRGPUDialect",
    "MLIRLLVMDialect",
    "MLIRLLVMToLLVMIRTranslation",
    "MLIRNVVMDialect",
    "MLIRNVVMToLLVMIRTranslation",
    "MLIRTargetLLVMIRExport",
)
# FileCheck, not, split-file and count are what an out-of-tree project's lit tests call.
TOOLS = ("FileCheck", "count", "llvm-config", "llvm-tblgen", "mlir-tblgen", "not", "split-file")
GIT = "https://github.com/llvm/llvm-project.git"
# What an installed LLVM is not usable without.
INSTALL = ("cmake-exports", "llvm-headers", "mlir-cmake-exports", "mlir-headers")


class LLVM(ConanFile):
    name = "llvm"
    description = "LLVM and MLIR: the parts that cuda-tile and our own tools link"
    license = "Apache-2.0 WITH LLVM-exception"
    url = homepage = "https://llvm.org"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"provider": ["source", "system"], "nvptx": [True, False]}
    default_options = {"provider": "source", "nvptx": True}
    python_requires = "tilestack_sources/1.0"

    def export(self):
        trim_conandata(
            self, raise_if_missing=False
        )  # so that another version's pins do not make this one's package another

    def export_sources(self):
        export_conandata_patches(self)

    def configure(self):
        if self.options.provider == "system":
            del self.options.nvptx  # a distribution's LLVM has every back end

    def layout(self):
        self.folders.source = "src"
        self.folders.build = "build"
        self.folders.generators = "build/conan"

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("llvm: Linux only")

    def package_id(self):
        if self.info.options.provider == "system":  # nothing of ours is in it, so no compiler of ours changes it
            self.info.settings.clear()

    def generate(self):
        if self.options.provider == "system":
            return
        toolchain = CMakeToolchain(self, generator="Ninja")
        toolchain.cache_variables.update(self._cmake_options())
        self.python_requires["tilestack_sources"].module.use_ccache(self, toolchain)
        toolchain.generate()

    def _cmake_options(self):
        off = (
            "LLVM_APPEND_VC_REV",  # a hash of whatever git checkout is around would go into every tool
            "LLVM_ENABLE_ASSERTIONS",
            "LLVM_ENABLE_BINDINGS",
            "LLVM_ENABLE_LIBEDIT",
            "LLVM_ENABLE_LIBXML2",
            "LLVM_ENABLE_ZLIB",
            "LLVM_ENABLE_ZSTD",
            "LLVM_INCLUDE_BENCHMARKS",
            "LLVM_INCLUDE_DOCS",
            "LLVM_INCLUDE_EXAMPLES",
            "LLVM_INCLUDE_TESTS",
            "MLIR_ENABLE_EXECUTION_ENGINE",
            "MLIR_INCLUDE_TESTS",
        )
        return {
            "LLVM_ENABLE_PROJECTS": "mlir",
            "LLVM_TARGETS_TO_BUILD": "Native;NVPTX" if self.options.nvptx else "Native",
            "LLVM_BUILD_UTILS": True,
            "LLVM_INSTALL_UTILS": True,
            "LLVM_PARALLEL_LINK_JOBS": "2",  # a link takes gigabytes
            **dict.fromkeys(off, False),
        }

    def build(self):
        if self.options.provider == "system":
            _check_system(self.version)
            return
        # Here and not in source(), which Conan calls for every provider: the system's LLVM needs no download.
        self._get_source()
        cmake = CMake(self)
        # The first configuration tells who links whom, the second fixes what is installed.
        cmake.configure(build_script_folder="llvm")
        roots = COMPONENTS + (NVPTX_COMPONENTS if self.options.nvptx else ())
        distribution = sorted({*_closure(Path(self.build_folder), roots), *TOOLS, *INSTALL})
        cmake.configure(build_script_folder="llvm", variables={"LLVM_DISTRIBUTION_COMPONENTS": ";".join(distribution)})
        cmake.build(target="distribution")

    def _get_source(self):
        sources = (self.conan_data or {}).get("sources") or {}
        get = self.python_requires["tilestack_sources"].module
        commit = re.fullmatch(r"[0-9a-f]{40}", str(self.version))  # pins itself: what a canary is given
        if self.version not in sources and not commit:
            raise ConanInvalidConfiguration(f"llvm/{self.version}: no source of this version is pinned")
        with chdir(self, self.source_folder):
            if Path("llvm").exists():
                return
            if commit:
                get.get_git(self, GIT, [], str(self.version), None, "llvm-project")
            else:
                get.get_archive(self, sources[self.version]["archives"])
            apply_conandata_patches(self)

    def package(self):
        if self.options.provider == "system":
            save(self, str(Path(self.package_folder, "provider.txt")), f"{_prefix(self.version)}\n")
            return
        CMake(self).build(target="install-distribution-stripped")
        source, package = Path(self.source_folder, "llvm"), Path(self.package_folder)
        copy(self, "LICENSE.TXT", str(source), str(package / "licenses"))
        for pattern in ("lit.py", "lit/*.py"):
            copy(self, pattern, str(source / "utils/lit"), str(package / "share/lit"))

    def package_info(self):
        self.cpp_info.libs = []  # LLVM's own CMake files are what finds its libraries
        if self.options.provider == "system":
            _check_system(self.version)
            prefix = _prefix(self.version)
            places = (prefix / "build/utils/lit/lit.py", prefix / "bin/lit")  # Debian's, until LLVM 22 and from 23
            lit = next((path for path in places if path.is_file()), places[-1])
            self.cpp_info.bindirs, self.cpp_info.includedirs, self.cpp_info.libdirs = [str(prefix / "bin")], [], []
        else:
            prefix = Path(self.package_folder)
            lit = prefix / "share/lit/lit.py"
            self.cpp_info.includedirs = []
        self.conf_info.define("user.llvm:prefix", str(prefix))
        self.conf_info.define("user.llvm:lit", str(lit))


def _prefix(version):
    return Path("/usr/lib", f"llvm-{version.split('.')[0]}")


def _check_system(version):
    """That the system's LLVM is `version`, exactly: MLIR's C++ interface changes from one release to the next."""
    config = _prefix(str(version)) / "bin/llvm-config"
    major = str(version).split(".")[0]
    packages = f"libmlir-{major}-dev mlir-{major}-tools llvm-{major}-dev llvm-{major}-tools"
    if not config.is_file():
        raise ConanException(f"no LLVM in {config.parent.parent}; next: install Debian's packages {packages}")
    found = subprocess.run([config, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    if found != str(version):
        raise ConanException(
            f"{config}: LLVM {found}, but the stack needs {version}; next: build it with --llvm source, or choose "
            f"the stack that fits: tilestack stack check {found}"
        )
    if not (config.parent.parent / "lib/cmake/mlir/MLIRConfig.cmake").is_file():
        raise ConanException(f"{config.parent.parent}: LLVM without MLIR; next: install {packages}")


def _closure(build_folder, roots):
    """`roots` and all libraries of this build that they link, from the export files that CMake wrote."""
    links = {}
    for name in ("llvm/LLVMExports.cmake", "mlir/MLIRTargets.cmake"):
        text = (build_folder / "lib/cmake" / name).read_text()
        links.update({target: [] for target in re.findall(r"^add_library\((\S+) ", text, re.MULTILINE)})
        for target, properties in re.findall(r"^set_target_properties\((\S+) PROPERTIES(.*?)^\)", text, re.M | re.S):
            if match := re.search(r'INTERFACE_LINK_LIBRARIES "([^"]*)"', properties):
                links[target] = re.findall(r"[\w:.+-]+", re.sub(r"\\?\$<LINK_ONLY:", "", match[1]))
    if missing := [root for root in roots if root not in links]:
        raise ConanException(f"this LLVM has no {', '.join(missing)}: COMPONENTS in the llvm recipe is out of date")
    found, waiting = set(), list(roots)
    while waiting:
        name = waiting.pop()
        if name in links and name not in found:  # what is not in there is the system's: m, rt, dl
            found.add(name)
            waiting.extend(links[name])
    return found
