"""Options of the library in the environment: unknown names, and values that it does not understand."""

import difflib
from collections.abc import Iterator

from numalloc_tools.doctor.finding import NOTE, OK, WARNING, Case, Finding
from numalloc_tools.machine.words import listed
from numalloc_tools.options_table import PREFIX, Option, experiments, options

_LIKE = 0.75  # difflib's ratio: one or two letters of a name differ


def check(case: Case) -> Iterator[Finding]:
    known = {option.variable: option for option in options()}
    ours = {name: value for name, value in sorted(case.environment.items()) if name.upper().startswith(PREFIX)}
    for_experiments = {option.variable for option in experiments()}
    for name, value in ours.items():
        if name in for_experiments:
            yield _for_experiments(name)
        elif name not in known:
            yield _unknown(name, value, list(known))
        elif value and not known[name].understands(value):
            yield _not_understood(known[name], value)
    in_force = [f"{name}={value}" for name, value in ours.items() if name in known and value and known[name].understands(value)]
    if in_force:
        yield Finding(OK, "options", f"Options in the environment: {listed(in_force)}")


def _for_experiments(name: str) -> Finding:
    why = "Only a library configured with -DNUMALLOC_EXPERIMENTS=ON has it; any other reports that at its start and ignores the variable."
    return Finding(NOTE, _named(name.removeprefix(PREFIX)), f"{name} is an option for experiments", why)


def _unknown(name: str, value: str, known: list[str]) -> Finding:
    finding = _named(name.upper().removeprefix(PREFIX))
    like = difflib.get_close_matches(name.upper(), known, 1, _like(name))
    if not like:
        return Finding(NOTE, finding, f"{name} is not an option of the library", "The library ignores it.")
    why = f"The library ignores it: the option's name is {like[0]}."
    return Finding(WARNING, finding, f"{name} is not an option of the library", why, [f"{like[0]}={value}"])


def _named(name: str) -> str:
    return f"option-{name.lower().replace('_', '-')}"


def _like(name: str) -> float:
    """Compares names without their common prefix."""
    own = max(1, len(name) - len(PREFIX))
    return (len(PREFIX) + _LIKE * own) / (len(PREFIX) + own)


def _not_understood(option: Option, value: str) -> Finding:
    return Finding(
        WARNING,
        _named(option.name),
        f"{option.variable}={value} is not understood",
        f"The library uses {option.default} instead, and reports that on standard error at its start.",
        [f"Accepted: {option.accepted}"],
    )
