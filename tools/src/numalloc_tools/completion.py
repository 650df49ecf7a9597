"""Completion of option values in a shell. Names of commands and options need no code here."""

import re
from collections.abc import Callable

from numalloc_tools.options_table import Option

Completion = Callable[[str], list[str]]


def one_of(*words: str) -> Completion:
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def some_of(*words: str) -> Completion:
    """Several values, separated by commas, each once."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{word}" for word in words if word.startswith(last) and word not in before.split(",")]

    return complete


def of_option(option: Option) -> Completion:
    """The plain words among the values that the table accepts."""
    if option.kind == "Path":
        return one_of()
    return one_of(*(word for word in re.findall(r"[\w:-]+", option.accepted) if option.understands(word)))
