"""Where in the program's words a setting takes hold."""

from collections.abc import Sequence

HERE = "{}"  # such as behind mpirun and its options


def placed(start: Sequence[str], command: Sequence[str]) -> list[str]:
    """`start` before the program, or where the program's words have a place for it."""
    if HERE not in command:
        return [*start, *command]
    return [word for one in command for word in (start if one == HERE else [one])]
