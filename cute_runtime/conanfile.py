"""The header-only C++ library as a Conan package: `conan create cute_runtime`.

cuda.h is the system's: a build that uses the package finds it as find_package(cute_runtime) does.
"""

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain

required_conan_version = ">=2.20"


class CuteRuntime(ConanFile):
    name = "cute_runtime"
    version = "0.1.0"
    description = "Launch compiled GPU kernels from C++17 over the CUDA driver API alone"
    license = "Apache-2.0"
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"  # for CMake alone, see package_id
    exports_sources = "CMakeLists.txt", "cmake/*", "include/*"
    no_copy_source = True

    def generate(self):
        CMakeToolchain(self).generate()

    def package(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.install()

    def package_id(self):
        self.info.clear()

    def package_info(self):
        # Consumers read the config files that CMake installed, not ones that Conan would write.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/cute_runtime"]
        self.cpp_info.bindirs, self.cpp_info.libdirs = [], []
