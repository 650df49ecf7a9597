"""What is preloaded in each run: numalloc and its peers, as they come and with their threads bound."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from numalloc_tools.bench import crates
from numalloc_tools.lab.allocators import DEBIAN, OURS
from numalloc_tools.preload import existing
from numalloc_tools.problem import Problem

if TYPE_CHECKING:  # run knows this module
    from numalloc_tools.run.calls import Call

BASELINE = "glibc"
BUNDLE = "bundle.json"  # at the top of what numalloc bench bundle has packed
BOUND = "+binding"  # behind a name: threads bound by libnumalloc-binding.so
FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
NAMES = (OURS, BASELINE, *crates.RECIPES, *DEBIAN)


@dataclass(frozen=True)
class Allocator:
    name: str
    libraries: tuple[Path, ...] = ()  # in the order of preloading; none: the C library's
    version: str = ""
    options: dict[str, str] = field(default_factory=dict)  # of numalloc or of its binding
    missing: str = ""  # why it cannot run, and what to do about it
    also: dict[str, str] = field(default_factory=dict)  # variables that a lever sets
    calls: "tuple[Call, ...]" = ()  # what a lever asks of the kernel before the program is started

    @property
    def preload(self) -> str:
        return ":".join(map(str, self.libraries))

    def environment(self) -> dict[str, str]:
        """The user's, less what would change what is measured. The launcher adds the preload."""
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("NUMALLOC_")}
        return environment | self.variables() | self.also

    def enter(self) -> None:
        """In the process that becomes the launcher: policies go on to what it starts."""
        for call in self.calls:
            call.make()

    def variables(self) -> dict[str, str]:
        return {f"NUMALLOC_{name.upper()}": value for name, value in self.options.items()}


def shown(name: str) -> str:
    """In headings: a variant of numalloc is told by what it changes."""
    return name.removeprefix(f"{OURS}:")


def binding_library(library: Path) -> Path | None:
    """It lies beside numalloc's own."""
    path = library.with_name("libnumalloc-binding.so")
    return path if path.is_file() else None


def given(texts: list[str]) -> dict[str, Path]:
    """What --allocator NAME=PATH names."""
    found: dict[str, Path] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not name or not path:
            raise Problem(f"--allocator: '{text}' is not understood; accepted: NAME=PATH of a library to preload")
        if name in NAMES or name in found or any(sign in name for sign in "+,@"):
            raise Problem(f"--allocator: '{name}' is not free; accepted: a name of its own, without +, @ and comma")
        found[name] = existing(Path(path), "--allocator")
    return found


def chosen(
    names: list[str], library: Path, others: dict[str, Path], say: Callable[[str], None], build_seconds: float = 1800
) -> list[Allocator]:
    """The allocators of these names; those from crates are built now, in at most `build_seconds` in all."""
    made: dict[str, Allocator] = {}
    result = []
    deadline = time.monotonic() + build_seconds
    for name in dict.fromkeys(names):
        base, plus, _ = name.partition(BOUND)
        if base not in NAMES and base not in others or name not in (base, base + BOUND) or name == OURS + BOUND:
            accepted = ", ".join([*NAMES, *others])
            raise Problem(f"--allocators: '{name}' is unknown; accepted: {accepted}, and each but {OURS} with {BOUND}")
        if base not in made:
            made[base] = _made(base, library, others, say, deadline - time.monotonic())
        result.append(_bound(made[base], library) if plus else made[base])
    return result


def _made(name: str, library: Path, others: dict[str, Path], say: Callable[[str], None], build_seconds: float) -> Allocator:
    if name == OURS:
        return Allocator(name, (library,), _revision(library))
    if name == BASELINE:
        return Allocator(name, version=os.confstr("CS_GNU_LIBC_VERSION") or "")
    if name in others:
        return Allocator(name, (others[name],))
    if name in DEBIAN:
        return _installed(name)
    recipe = crates.RECIPES[name]
    if not (path := crates.built(name)):
        if recipe.seconds > build_seconds:
            return Allocator(
                name, version=recipe.allocator_version, missing="not built yet, and --quick has no time for it: run numalloc bench --build"
            )
        say(f"building {name} {recipe.allocator_version} from {recipe.origin}")
        try:
            path = crates.build(name, build_seconds)
        except crates.CannotBuild as reason:
            return Allocator(name, version=recipe.allocator_version, missing=f"cannot be built: {reason}")
    return Allocator(name, (path,), recipe.allocator_version)


def _installed(name: str) -> Allocator:
    package, library = DEBIAN[name]
    for folder in FOLDERS:
        path = Path(folder, library)
        if path.is_file():
            return Allocator(name, (path.resolve(),), _package_version(package))
    return Allocator(name, missing=f"not installed: apt install {package}")


def _bound(allocator: Allocator, library: Path) -> Allocator:
    name = allocator.name + BOUND
    binding = binding_library(library)
    if allocator.missing:
        return replace(allocator, name=name)
    if binding is None:
        return replace(allocator, name=name, missing=f"libnumalloc-binding.so is not beside {library}: build it")
    return replace(allocator, name=name, libraries=(binding, *allocator.libraries))


def _package_version(package: str) -> str:
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()


def bundled_commit(library: Path) -> str:
    for folder in library.parents:
        if (file := folder / BUNDLE).is_file():
            return str(json.loads(file.read_text()).get("commit", ""))
    return ""


def _revision(library: Path) -> str:
    """git's name for the working tree that the library was built in, where there is one; of a bundle what it says."""
    if told := bundled_commit(library):
        return told
    command = ["git", "-C", str(library.parent), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()
