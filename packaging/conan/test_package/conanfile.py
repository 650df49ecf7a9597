"""The programs of tests/structure/outside, linked with the package in every way, and run."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class Outside(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder=os.path.join(self.recipe_folder, "../../../tests/structure/outside"))
        cmake.build()

    def test(self):
        for kind in ("shared", "archive", "static"):
            for language in ("c", "cpp"):
                if can_run(self):
                    self.run(os.path.join(self.cpp.build.bindir, f"{kind}_{language}"), env="conanrun")
