"""The Spack package of numalloc: spack repo add packaging/spack, then spack install numalloc.

It builds the main branch of the checkout that it lies in: there is no archive to download yet.
"""

from pathlib import Path

from spack.package import conflicts, depends_on, license, requires, version

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    from spack.package import CMakePackage  # before Spack 1.0

_CHECKOUT = Path(__file__).resolve().parents[4]


class Numalloc(CMakePackage):
    """A malloc for machines whose memory is not all equally near (NUMA)."""

    git = _CHECKOUT.as_uri()
    license("MIT")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")

    requires("platform=linux")
    requires("target=x86_64:", "target=aarch64:", policy="one_of")
    conflicts("%gcc@:11", msg="numalloc needs C++20 as gcc 12 or later has it")

    def cmake_args(self):
        return [self.define(f"NUMALLOC_BUILD_{part}", False) for part in ("TESTS", "BENCHMARKS", "SCOPE")]

    def setup_run_environment(self, env):
        """`spack load numalloc`: programs find the library by its name, as in LD_PRELOAD=libnumalloc.so."""
        env.prepend_path("LD_LIBRARY_PATH", self.prefix.lib)
