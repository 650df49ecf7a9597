"""Values of options that a shell completes. Names of commands and options it completes by itself, other words as files."""

import re
from collections.abc import Callable

from numalloc_tools.options_table import Option

Completion = Callable[[str], list[str]]


def one_of(*words: str) -> Completion:
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def some_of(*words: str) -> Completion:
    """With commas between them, none of them twice."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{word}" for word in words if word.startswith(last) and word not in before.split(",")]

    return complete


def of_option(option: Option) -> Completion:
    """The words among what the table says that it accepts."""
    if option.kind == "Path":
        return one_of()
    return one_of(*(word for word in re.findall(r"[\w:-]+", option.accepted) if option.understands(word)))
