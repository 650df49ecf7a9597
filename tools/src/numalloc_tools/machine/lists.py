"""Numbers of CPUs and nodes, as the kernel and taskset write them: 0-3,8, and 0-62:2 for every other one."""

MOST = 1 << 20  # a larger number is no CPU's: the file is broken
_LEAST_IN_STEPS = 4  # shorter rows are easier to read one by one


def numbers(text: str) -> list[int]:
    found: set[int] = set()
    for part in text.strip().split(","):
        if not part.strip():
            continue
        ends, _, step = part.partition(":")
        first, _, last = ends.partition("-")
        span = range(int(first), int(last or first) + 1, int(step or 1))
        if len(span) > MOST:
            raise ValueError(text)
        found.update(span)
    return sorted(found)


def ranges(found: list[int], steps: bool = True) -> str:
    parts = []
    at = 0
    while at < len(found):
        step, end = 1, at
        if at + 1 < len(found):
            step = found[at + 1] - found[at]
            end = at + 1
            while end + 1 < len(found) and found[end + 1] - found[end] == step:
                end += 1
        if step > 1 and (not steps or end - at + 1 < _LEAST_IN_STEPS):
            end = at
        if end == at:
            parts.append(f"{found[at]}")
        else:
            parts.append(f"{found[at]}-{found[end]}" + (f":{step}" if step > 1 else ""))
        at = end + 1
    return ",".join(parts)
