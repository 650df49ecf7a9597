"""The place in the program's words where a setting is inserted."""

from collections.abc import Sequence

HERE = "{}"  # such as after mpirun and its options


def placed(start: Sequence[str], command: Sequence[str]) -> list[str]:
    """Inserts `start` before the program, or at the placeholder in the program's words."""
    if HERE not in command:
        return [*start, *command]
    return [word for one in command for word in (start if one == HERE else [one])]
