"""Builds allocators from the sources in their crates, into the cache: Debian's are years old."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from numalloc_tools import cache
from numalloc_tools.compiler import compiler

_SHARED = ["-O3", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-ftls-model=initial-exec", "-fno-builtin-malloc"]
_DOWNLOAD_SECONDS = 60
_REVISION = 1  # incremented whenever the builds change


class CannotBuild(Exception):
    """The reason, in one line."""


@dataclass(frozen=True)
class Recipe:
    crate: str
    version: str  # of the crate
    sha256: str
    allocator_version: str
    tools: tuple[str, ...]
    seconds: float  # on two cores, for users with little time
    build: Callable[[Path, Path, Callable], Path]  # (sources, empty folder, run) -> the library

    @property
    def url(self) -> str:
        return f"https://static.crates.io/crates/{self.crate}/{self.crate}-{quote(self.version)}.crate"


def _mimalloc(sources: Path, work: Path, run: Callable, more: tuple[str, ...] = ()) -> Path:
    sources /= "c_src/mimalloc/v3"
    defines = ["-DMI_SHARED_LIB", "-DMI_SHARED_LIB_EXPORT", "-DMI_MALLOC_OVERRIDE", *more]
    library = work / "libmimalloc.so"
    run([compiler(), "-std=gnu11", *_SHARED, *defines, "-I", sources / "include", sources / "src/static.c", "-o", library, "-pthread"])
    return library


def _mimalloc_secure(sources: Path, work: Path, run: Callable) -> Path:
    return _mimalloc(sources, work, run, ("-DMI_SECURE=4",))  # the option that its own build calls secure


def _snmalloc(sources: Path, work: Path, run: Callable, target: str = "snmallocshim") -> Path:
    run(["cmake", "-S", sources / "upstream", "-B", work, "-DCMAKE_BUILD_TYPE=Release", "-DSNMALLOC_BUILD_TESTING=OFF"])
    run(["cmake", "--build", work, "--target", target, "-j", str(os.cpu_count() or 1)])
    return work / f"lib{target}.so"


def _snmalloc_with_checks(sources: Path, work: Path, run: Callable) -> Path:
    return _snmalloc(sources, work, run, "snmallocshim-checks")


def _rpmalloc(sources: Path, work: Path, run: Callable) -> Path:
    library = work / "librpmalloc.so"
    defines = ["-DENABLE_PRELOAD=1", "-DENABLE_OVERRIDE=1"]
    run([compiler(), "-std=gnu11", "-w", *_SHARED, *defines, sources / "rpmalloc/rpmalloc/rpmalloc.c", "-o", library, "-pthread"])
    return library


def _jemalloc(sources: Path, work: Path, run: Callable) -> Path:
    shutil.copytree(sources / "jemalloc", work, dirs_exist_ok=True)
    shutil.copy(sources / "configure/configure", work)
    version = RECIPES["jemalloc-new"].version.partition("+")[2]
    run(["./configure", f"--with-version={version}", "--disable-static", "--disable-doc"], cwd=work)
    run(["make", "-j", str(os.cpu_count() or 1), "build_lib_shared"], cwd=work)
    return work / "lib/libjemalloc.so.2"


def _tcmalloc(sources: Path, work: Path, run: Callable) -> Path:
    run(["cmake", "-S", Path(__file__).with_name("tcmalloc"), "-B", work, "-DCMAKE_BUILD_TYPE=Release", f"-DSOURCES={sources}"])
    run(["cmake", "--build", work, "-j", str(os.cpu_count() or 1)])
    return work / "libtcmalloc.so"


def _hoard(sources: Path, work: Path, run: Callable) -> Path:
    shutil.copytree(sources / "Hoard/src", work, dirs_exist_ok=True)
    shutil.copytree(sources / "Heap-Layers", work / "Heap-Layers")
    # It sets the hooks of malloc, which glibc 2.34 has removed; a preloaded library does not need them.
    (work / "Heap-Layers/wrappers/gnuwrapper-hooks.cpp").write_text("")
    folders = [f"-I{work / name}" for name in (".", "include", "include/util", "include/hoard", "include/superblocks", "Heap-Layers")]
    # As in the crate's build.rs, without -ffast-math: in a library of gcc 12 it changes the arithmetic of the whole process.
    flags = ["-std=c++14", "-w", "-O3", "-DNDEBUG", "-fno-builtin-malloc", "-Dalways_inline=", "-D_REENTRANT=1"]
    more = ["-fPIC", "-shared", "-ftls-model=initial-exec", "-Wl,-Bsymbolic"]
    files = [work / "source/libhoard.cpp", work / "source/unixtls.cpp"]
    run(["c++", *flags, *more, *folders, *files, "-o", work / "libhoard.so", "-ldl", "-pthread"])
    return work / "libhoard.so"


# Pinned: the same numalloc is compared with the same peers everywhere.
RECIPES = {
    "mimalloc3": Recipe(
        "libmimalloc-sys",
        "0.1.49",
        "6a45a52f43e1c16f667ccfe4dd8c85b7f7c204fd5e3bf46c5b0db9a5c3c0b8e9",
        "3.3.2",
        (),
        10,
        _mimalloc,
    ),
    "snmalloc": Recipe(
        "snmalloc-sys",
        "0.7.6",
        "f09c93c55f9a2b8dab75738a83c771231c5f408af65b8657433fe5bc93cc76cb",
        "0.7.6",
        ("cmake", "c++"),
        30,
        _snmalloc,
    ),
    "rpmalloc": Recipe(
        "rpmalloc-sys",
        "0.2.3+b097fd0",
        "8d4b7d5e225a53887ee57fcec492eaf114b8e290f7072d035adc6ddd6810b67b",
        "1.4.x (b097fd0)",
        (),
        5,
        _rpmalloc,
    ),
    "jemalloc-new": Recipe(
        "tikv-jemalloc-sys",
        "0.7.1+5.3.1-0-g81034ce1f1373e37dc865038e1bc8eeecf559ce8",
        "1a2825c78386b4ae0314074867860ba9577875de945f05992c38815cbec327f0",
        "5.3.1",
        ("make", "c++"),
        90,
        _jemalloc,
    ),
    "tcmalloc-new": Recipe(
        "libtcmalloc-sys",
        "0.1.14",
        "33e204268a3b09862788a2894346c768b95b2cb29cba42c5e2bb9ea7f48fa317",
        "of June 2025",
        ("cmake", "c++"),
        120,
        _tcmalloc,
    ),
    "hoard": Recipe(
        "hoard-sys",
        "0.1.2",
        "62fc5134d772ea018305754b3fd153a7a313e1bd537b0aaa8e8753ab7728654b",
        "3.13.0",
        ("c++",),
        10,
        _hoard,
    ),
}
# The same sources with their checks: for docs/security.md, not for the bench.
CHECKED = {
    "mimalloc3-secure": replace(RECIPES["mimalloc3"], build=_mimalloc_secure),
    "snmalloc-checks": replace(RECIPES["snmalloc"], build=_snmalloc_with_checks),
}


def _recipe(name: str) -> Recipe:
    return RECIPES[name] if name in RECIPES else CHECKED[name]


def _folder(name: str) -> Path:
    """The folder for this recipe, crate and compiler."""
    recipe = _recipe(name)
    texts = (recipe.url, recipe.sha256, _REVISION, compiler())
    return cache.directory("allocators", f"{name}-{hashlib.sha256(repr(texts).encode()).hexdigest()[:12]}")


def built(name: str) -> Path | None:
    """The library, if it has been built already."""
    library = _folder(name) / f"lib{name}.so"
    return library if library.is_file() else None


def build(name: str, seconds: float = 1800) -> Path:
    """Downloads, checks and builds the library; raises CannotBuild. One process builds, others wait for it."""
    recipe, folder = _recipe(name), _folder(name)
    library = folder / f"lib{name}.so"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if library.is_file():
            return library
        for tool in recipe.tools:
            if not shutil.which(tool):
                package = {"c++": "g++"}.get(tool, tool)
                raise CannotBuild(f"{tool} is missing; install the Debian package {package}")
        deadline = time.monotonic() + seconds
        work = folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        (work / "build").mkdir(parents=True)
        sources = _unpacked(recipe, work)

        def run(command: list, cwd: Path | None = None) -> None:
            _run(command, cwd, folder / "log", deadline)

        try:
            found = recipe.build(sources, work / "build", run)
            shutil.copy(found, work / "library")
        except OSError as error:
            raise CannotBuild(str(error)) from None
        os.rename(work / "library", library)
        shutil.rmtree(work)
    return library


def _unpacked(recipe: Recipe, work: Path) -> Path:
    import tarfile  # imported here, as below: every command would wait for it

    archive = cache.directory("crates") / f"{recipe.sha256}.crate"
    if not archive.is_file():
        _download(recipe, archive)
    with tarfile.open(archive) as tar:
        tar.extractall(work, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(work)
    return work / f"{recipe.crate}-{recipe.version}"


def _download(recipe: Recipe, archive: Path) -> None:
    import urllib.request

    try:
        with urllib.request.urlopen(recipe.url, timeout=_DOWNLOAD_SECONDS) as answer:
            content = answer.read()
    except OSError as error:
        raise CannotBuild(f"{recipe.url} cannot be fetched: {error}") from None
    found = hashlib.sha256(content).hexdigest()
    if found != recipe.sha256:
        raise CannotBuild(f"{recipe.url} has changed: its SHA-256 is {found}")
    part = archive.with_suffix(f".{os.getpid()}")
    part.write_bytes(content)
    os.rename(part, archive)


def _run(command: list, cwd: Path | None, log: Path, deadline: float) -> None:
    words = [str(word) for word in command]
    with open(log, "ab") as output:
        try:
            done = subprocess.run(
                words,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=max(1.0, deadline - time.monotonic()),
            )
        except subprocess.TimeoutExpired:
            raise CannotBuild(f"{words[0]} did not finish in time") from None
    if done.returncode:
        raise CannotBuild(f"{words[0]} failed; its output is in {log}")
