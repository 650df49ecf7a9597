"""The wheel. With NUMALLOC_LIBRARIES=FOLDER, an absolute path, the libraries of that build folder go into it, for its own kind of
machine only; without, it is the tools alone. scripts/wheel.sh makes the former."""

import os
import shutil
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

LIBRARIES = os.environ.get("NUMALLOC_LIBRARIES", "")


class WithLibraries(build_py):
    def run(self):
        super().run()
        if not LIBRARIES or self.editable_mode:
            return
        target = Path(self.build_lib, "numalloc_tools/lib")
        target.mkdir(parents=True, exist_ok=True)
        for name in ("libnumalloc.so", "libnumalloc-binding.so"):
            library = Path(LIBRARIES, name)
            if not library.is_file():
                raise SystemExit(
                    f"NUMALLOC_LIBRARIES: {library} is not there; accepted: a build folder such as {Path.cwd().parent}/build/release"
                )
            shutil.copyfile(library.resolve(), target / name)


class WithMachineCode(Distribution):
    def has_ext_modules(self):
        return bool(LIBRARIES)


class OfThisMachine(bdist_wheel):
    def get_tag(self):
        python, abi, platform = super().get_tag()
        return ("py3", "none", platform) if LIBRARIES else (python, abi, platform)


setup(distclass=WithMachineCode, cmdclass={"build_py": WithLibraries, "bdist_wheel": OfThisMachine})
