"""The native toolchain of one stack: LLVM and cuda-tile in the versions that toolchain/pinned/pins.toml gives for it.

    conan install . -o "&:stack=13.1" -o "&:provider=system" -of PREFIX

`nox -s build_toolchain -- --native` runs that, in a container. `PREFIX/libexec` gets the tools, `PREFIX/llvm.json` says
where the LLVM is. The versions are in one file, so this recipe reads it.
"""

import json
import tomllib
from pathlib import Path

from conan import ConanFile
from conan.tools.files import copy, save
from conan.tools.sbom import cyclonedx_1_6

required_conan_version = ">=2.20"

PINS = tomllib.loads((Path(__file__).parent / "toolchain/pinned/pins.toml").read_text())["native"]


class Toolchain(ConanFile):
    name = "tilestack-native"
    settings = "os", "arch", "compiler", "build_type"
    virtualbuildenv = virtualrunenv = False  # the scripts that Conan would write are not used
    # `llvm`: a version other than the stack's, to test if it fits. `cuda_tile=False`: build LLVM only.
    options = {
        "stack": list(PINS["stacks"]),
        "provider": ["source", "system"],
        "llvm": [None, "ANY"],
        "cuda_tile": [True, False],
    }
    default_options = {"stack": PINS["default"], "provider": "system", "llvm": None, "cuda_tile": True}

    @property
    def _stack(self):
        return PINS["stacks"][str(self.options.stack)]

    @property
    def _llvm(self):
        return self.options.get_safe("llvm") or self._stack["llvm"][str(self.options.provider)]

    def configure(self):
        self.options["llvm"].provider = self.options.provider
        if self.options.cuda_tile:
            self.options["cuda_tile"].llvm = self._llvm

    def requirements(self):
        self.requires(f"llvm/{self._llvm}")
        if self.options.cuda_tile:
            self.requires(f"cuda_tile/{self._stack['cuda_tile']}")

    def generate(self):
        prefix = Path(self.generators_folder)
        for dependency in self.dependencies.host.values():
            if dependency.package_folder:  # not for a system's LLVM: its tools run where they are installed
                copy(self, "*", str(Path(dependency.package_folder, "bin")), str(prefix / "libexec"))
        llvm = self.dependencies["llvm"]
        facts = {
            "version": str(llvm.ref.version),
            "prefix": llvm.conf_info.get("user.llvm:prefix", check_type=str),
            "lit": llvm.conf_info.get("user.llvm:lit", check_type=str),
        }
        save(self, str(prefix / "llvm.json"), json.dumps(facts, indent=1) + "\n")
        # The components that the tools were made from; `tilestack sbom toolchain --native FILE` includes it.
        sbom = cyclonedx_1_6(self, add_build=True)
        # A random number and the time: removed, because the same tools must have the same SBOM.
        sbom.pop("serialNumber", None)
        sbom["metadata"].pop("timestamp", None)
        text = json.dumps(sbom, indent=1).replace(sbom["metadata"]["component"]["bom-ref"], self.name)
        save(self, str(prefix / "sbom.cdx.json"), text + "\n")
