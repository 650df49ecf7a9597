"""The libraries to preload in each run: numalloc and its peers, with their defaults and with bound threads."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from numalloc_tools.allocators import crates
from numalloc_tools.allocators.allocator import BASELINE, BOUND, DEBIAN, NAMES, OURS, Allocator
from numalloc_tools.allocators.found import binding_library, installed
from numalloc_tools.preload import existing
from numalloc_tools.problem import Problem

BUNDLE = "bundle.json"  # at the top of an archive of `research bundle`


def given(texts: list[str]) -> dict[str, Path]:
    """The allocator that --allocator NAME=PATH names."""
    found: dict[str, Path] = {}
    for name, path in named_paths(texts):
        if name in NAMES or name in found or any(sign in name for sign in "+,@"):
            raise Problem(f"--allocator: '{name}' is taken or not allowed; accepted: another name, without +, @ and comma")
        found[name] = existing(path, "--allocator")
    return found


def named_paths(texts: list[str]) -> Iterator[tuple[str, Path]]:
    for text in texts:
        name, _, path = text.partition("=")
        if not name or not path:
            raise Problem(f"--allocator: '{text}' is not understood; accepted: NAME=PATH of a library to preload")
        yield name, Path(path)


def chosen(
    names: list[str], library: Path, others: dict[str, Path], say: Callable[[str], None], build_seconds: float = 1800
) -> list[Allocator]:
    """The allocators with these names; builds those from crates now, in at most `build_seconds` in all."""
    made: dict[str, Allocator] = {}
    result = []
    deadline = time.monotonic() + build_seconds
    for name in dict.fromkeys(names):
        base, plus, _ = name.partition(BOUND)
        if base not in NAMES and base not in others or name not in (base, base + BOUND) or name == OURS + BOUND:
            accepted = ", ".join([*NAMES, *others])
            raise Problem(f"--allocators: '{name}' is unknown; accepted: {accepted}; each but {OURS} also with {BOUND}")
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
        package = DEBIAN[name]
        if path := installed(name):
            return Allocator(name, (path,), next(filter(None, map(_package_version, package.names)), ""))
        return Allocator(name, missing=f"not installed: apt install {package.said}")
    recipe = crates.RECIPES[name]
    if not (path := crates.built(name)):
        if recipe.seconds > build_seconds:
            return Allocator(
                name, version=recipe.allocator_version, missing="not built yet, and --quick has no time for it: run numalloc bench --build"
            )
        say(f"building {name} {recipe.allocator_version} from crate {recipe.crate} {recipe.version}")
        try:
            path = crates.build(name, build_seconds)
        except crates.CannotBuild as reason:
            return Allocator(name, version=recipe.allocator_version, missing=f"cannot be built: {reason}")
    return Allocator(name, (path,), recipe.allocator_version)


def _bound(allocator: Allocator, library: Path) -> Allocator:
    name = allocator.name + BOUND
    binding = binding_library(library)
    if allocator.missing:
        return replace(allocator, name=name)
    if binding is None:
        return replace(allocator, name=name, missing=f"libnumalloc-binding.so is not in the folder of {library}: build it")
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
    """git's description of the working tree in which the library was built, if any; for a bundle, its record."""
    if told := bundled_commit(library):
        return told
    command = ["git", "-C", str(library.parent), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()
