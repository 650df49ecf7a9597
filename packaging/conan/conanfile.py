"""The Conan package of numalloc: conan create packaging/conan

It has the libraries, the headers and the files for CMake that `cmake --install` leaves, which define
numalloc::numalloc and numalloc::numalloc_static.
"""

import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy

_SOURCES = Path(__file__).resolve().parents[2]


class Numalloc(ConanFile):
    name = "numalloc"
    license = "MIT"
    description = "A malloc for machines whose memory is not all equally near"
    topics = ("malloc", "numa", "memory-allocator")
    settings = "os", "arch", "compiler", "build_type"

    def set_version(self):
        self.version = re.search(r"project\(numalloc VERSION ([\d.]+)", (_SOURCES / "CMakeLists.txt").read_text())[1]

    def export_sources(self):
        for what in ("CMakeLists.txt", "LICENSE", "cmake/*", "src/*", "include/*", "docs/*.md"):
            copy(self, what, src=_SOURCES, dst=self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration(f"{self.settings.os} on {self.settings.arch}; accepted: Linux on x86_64 or armv8")
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "BENCHMARKS", "SCOPE"):
            toolchain.cache_variables[f"NUMALLOC_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", src=self.source_folder, dst=Path(self.package_folder) / "licenses")
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")  # the package has its own files for CMake
        self.cpp_info.builddirs = ["lib/cmake/numalloc"]
        self.cpp_info.libs = ["numalloc"]
