"""cuda-tile: NVIDIA's open C++ implementation of the cuda_tile dialect and of Tile IR bytecode, with its tools."""

from pathlib import Path

from conan import ConanFile
from conan.errors import ConanException, ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import apply_conandata_patches, copy, export_conandata_patches, trim_conandata
from conan.tools.scm import Version

required_conan_version = ">=2.20"

# Each tool, and the first version that is known to have it: v13.1.3 has no cuda-tile-optimize, v13.3.2 has. A version
# between the two gives it if its build makes it.
TOOLS = {"cuda-tile-opt": "13.1.3", "cuda-tile-optimize": "13.3.2", "cuda-tile-translate": "13.1.3"}


class CudaTile(ConanFile):
    name = "cuda_tile"
    description = "CUDA Tile IR: dialect, bytecode reader and writer, optimizer"
    license = "Apache-2.0 WITH LLVM-exception"
    url = homepage = "https://github.com/NVIDIA/cuda-tile"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    # `llvm`: the version to build with; which one fits is what a stack says, so there is no default.
    # `upstream_tests` builds and runs cuda-tile's own lit tests as well.
    options = {"llvm": ["ANY"], "upstream_tests": [True, False]}
    default_options = {"upstream_tests": False}
    python_requires = "tilestack_sources/1.0"

    def export(self):
        trim_conandata(self)

    def export_sources(self):
        export_conandata_patches(self)

    def layout(self):
        self.folders.source = "src"
        self.folders.build = "build"
        self.folders.generators = "build/conan"

    def requirements(self):
        self.requires(f"llvm/{self.options.llvm}", transitive_headers=True)

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("cuda_tile: Linux only")

    def package_id(self):
        self.info.requires["llvm"].full_package_mode()  # linked in statically, or loaded at its exact version

    def source(self):
        data = self.conan_data["sources"]
        if self.version not in data:
            known = ", ".join(sorted(data))
            raise ConanInvalidConfiguration(f"cuda_tile/{self.version}: no source is pinned; there is one of {known}")
        pinned = data[self.version]
        self.python_requires["tilestack_sources"].module.get_git(
            self, pinned["url"], pinned["mirrors"], pinned["commit"], pinned["tree"], "cuda-tile"
        )
        apply_conandata_patches(self)

    def generate(self):
        llvm = self.dependencies["llvm"].conf_info
        prefix = llvm.get("user.llvm:prefix", check_type=str)
        toolchain = CMakeToolchain(self, generator="Ninja")
        toolchain.user_presets_path = False
        toolchain.cache_variables["CUDA_TILE_USE_LLVM_INSTALL_DIR"] = prefix
        toolchain.cache_variables["CUDA_TILE_ENABLE_TESTING"] = bool(self.options.upstream_tests)
        if self.options.upstream_tests:
            toolchain.cache_variables["LLVM_EXTERNAL_LIT"] = llvm.get("user.llvm:lit", check_type=str)
        self.python_requires["tilestack_sources"].module.use_ccache(self, toolchain)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()
        if self.options.upstream_tests:
            cmake.build(target="check-cuda-tile")

    def package(self):
        CMake(self).install()
        source, build, package = Path(self.source_folder), Path(self.build_folder), Path(self.package_folder)
        copy(self, "LICENSE*", str(source), str(package / "licenses"))
        for tool in TOOLS:  # whether `install` takes the tools along depends on how LLVM was configured
            copy(self, tool, str(build / "bin"), str(package / "bin"))
        demanded = [tool for tool, since in TOOLS.items() if Version(self.version) >= since]
        if missing := [tool for tool in demanded if not (package / "bin" / tool).is_file()]:
            raise ConanException(f"cuda_tile/{self.version}: the build made no {', '.join(missing)}")

    def package_info(self):
        self.cpp_info.libs = []
        self.cpp_info.includedirs = ["include"]
