"""Parses the user's values: sizes, lists of nodes, one value or a list with one value per node."""

import re

from numalloc_tools.problem import Problem

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text: str, what: str) -> int:
    """'512M' -> bytes."""
    match = re.fullmatch(r"(\d+)([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not match:
        raise Problem(f"{what}: '{text}' is not a size; accepted: a number with K, M or G, such as 512M")
    return int(match[1]) * _UNITS[match[2].upper()]


def count(text: str, what: str) -> int:
    if not re.fullmatch(r"\d+", text.strip()):
        raise Problem(f"{what}: '{text}' is not a count; accepted: a whole number, 0 or more")
    return int(text)


def number_list(text: str, what: str, below: int) -> list[int]:
    """'0-2,5' -> [0, 1, 2, 5]; every number must be below `below`."""
    numbers: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not match or (match[2] and int(match[2]) < int(match[1])):
            raise Problem(f"{what}: '{text}' is not a list of numbers; accepted: a list such as 0-2,5")
        numbers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    if max(numbers) >= below:
        raise Problem(f"{what}: there is no {max(numbers)}; accepted: 0 to {below - 1}")
    return sorted(numbers)


def per_node(text: str, nodes: int, what: str, read) -> list[int]:
    """'2' -> the same on every node; '2,4,0,2' -> one value per node."""
    parts = text.split(",")
    if len(parts) == 1:
        return [read(parts[0], what)] * nodes
    if len(parts) != nodes:
        raise Problem(f"{what}: {len(parts)} values for {nodes} nodes; accepted: one value, or one for each node")
    return [read(part, what) for part in parts]


def choice(text: str, accepted: tuple[str, ...], what: str) -> str:
    if text not in accepted:
        raise Problem(f"{what}: '{text}' is unknown; accepted: {', '.join(accepted)}")
    return text
