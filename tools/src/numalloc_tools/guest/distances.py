"""Distances between nodes, in the firmware's units: 10 is the node itself, larger is farther."""

from pathlib import Path

from numalloc_tools.problem import Problem

HOME = 10
FARTHEST = 254  # 255 means "unreachable"
KINDS = ("full", "twogroups", "ladder")


def matrix(kind: str, nodes: int) -> list[list[int]]:
    """full: all other nodes are equally far. twogroups: two halves, 21 within and 31 across.
    ladder: farther with every node between. Anything else is the name of a file."""
    if kind == "full":
        return _fill(nodes, lambda i, j: 20)
    if kind == "twogroups":
        half = (nodes + 1) // 2
        return _fill(nodes, lambda i, j: 21 if (i < half) == (j < half) else 31)
    if kind == "ladder":
        step = 10 if nodes <= 24 else 7  # 32 nodes must stay below 255
        return _fill(nodes, lambda i, j: HOME + step * abs(i - j))
    return _read(kind, nodes)


def _fill(nodes: int, distance) -> list[list[int]]:
    return [[HOME if i == j else distance(i, j) for j in range(nodes)] for i in range(nodes)]


def _read(name: str, nodes: int) -> list[list[int]]:
    try:
        text = Path(name).read_text(errors="replace")
    except OSError as error:
        raise Problem(f"--distance: '{name}' is neither {', '.join(KINDS)} nor a file that can be read ({error.strerror})") from None
    try:
        rows = [[int(word) for word in line.replace(",", " ").split()] for line in text.splitlines() if line.strip()]
    except ValueError:
        raise Problem(f"--distance: {name} contains something other than whole numbers") from None
    if len(rows) != nodes or any(len(row) != nodes for row in rows):
        raise Problem(f"--distance: {name} must contain {nodes} lines of {nodes} numbers, one line per node")
    for i, row in enumerate(rows):
        for j, distance in enumerate(row):
            lowest, highest = (HOME, HOME) if i == j else (HOME + 1, FARTHEST)
            if not lowest <= distance <= highest:
                raise Problem(
                    f"--distance: {name} has {distance} from node {i} to node {j}; accepted: {HOME} from a node to itself, "
                    f"{HOME + 1} to {FARTHEST} to another"
                )
    return rows
