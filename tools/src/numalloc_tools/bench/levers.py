"""Levers of the system as further variants of each allocator: where threads run, memory policy, huge pages, AutoNUMA."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

from numalloc_tools.allocators import BOUND, OURS, Allocator
from numalloc_tools.launch.prepare import prepared
from numalloc_tools.launch.setting import AUTONUMA, DEFAULT, HUGE_PAGES, MEMORY_ACCEPTED, THREADS, Setting, check_memory
from numalloc_tools.problem import Problem

LEVERS = {"threads": ", ".join(THREADS), "memory": MEMORY_ACCEPTED, "huge_pages": ", ".join(HUGE_PAGES), "autonuma": ", ".join(AUTONUMA)}
AT = "@"  # after an allocator's name: the settings of this variant


def parsed(texts: list[str]) -> dict[str, list[str]]:
    """Parses --lever NAME=VALUE,VALUE."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        words = [word.strip() for word in values.split(",") if word.strip()]
        if name not in LEVERS or name in found or not words:
            raise Problem(f"--lever: '{text}' is not understood; accepted: each of {', '.join(LEVERS)} once, as NAME=VALUE,VALUE")
        for word in words:
            one: dict[str, Any] = {name: word}
            try:
                check_memory(word) if name == "memory" else Setting(**one)
            except Problem:
                raise Problem(f"--lever: '{word}' is unknown; accepted for {name}: {LEVERS[name]}") from None
        found[name] = list(dict.fromkeys(words))
    return found


def variants(compared: list[Allocator], wanted: dict[str, list[str]]) -> tuple[list[Allocator], list[str]]:
    """Each allocator under each combination, and notes on settings that have no effect on this machine."""
    result, notes = [], []
    for allocator in compared:
        for values in itertools.product(*wanted.values()):
            one, said = _variant(allocator, dict(zip(wanted, values, strict=True)))
            result.append(one)
            notes += [f"{one.name}: {note}" for note in said]
    return result, notes


def _variant(allocator: Allocator, values: dict[str, Any]) -> tuple[Allocator, tuple[str, ...]]:
    what = ",".join(f"{name}={value}" for name, value in values.items() if value != DEFAULT)
    name = f"{allocator.name}{AT}{what}" if what else allocator.name
    if allocator.missing or not what:
        return replace(allocator, name=name), ()
    if BOUND in allocator.name and values.get("threads", DEFAULT) != DEFAULT:
        return replace(
            allocator, name=name, missing=f"{BOUND} binds its threads already; accepted: the plain allocator, with --lever threads"
        ), ()
    library = str(allocator.libraries[-1]) if allocator.libraries else "glibc"
    options = tuple(allocator.options.items()) if allocator.name == OURS else ()
    try:
        launch = prepared(Setting(allocator=library, options=options, **values), environment={})
    except Problem as problem:
        return replace(allocator, name=name, missing=str(problem)), ()
    environment = dict(launch.environment)
    preload = (environment.pop("LD_PRELOAD", None) or "").split(":")
    libraries = tuple(Path(path) for path in preload if path)
    bound = tuple(path for path in allocator.libraries[:-1] if path not in libraries)
    variables = {key: value for key, value in environment.items() if value is not None}
    return replace(allocator, name=name, libraries=(*bound, *libraries), also=variables, calls=launch.calls), launch.notes
