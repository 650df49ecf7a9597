"""Numbers for people."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(number: float) -> str:
    """Three digits: 1.46 GiB, 512 MiB."""
    unit = 0
    while number >= 1000 and unit + 1 < len(_UNITS):
        number /= 1024
        unit += 1
    digits = 0 if unit == 0 or number >= 100 or number == int(number) else 1 if number >= 10 else 2
    return f"{number:.{digits}f} {_UNITS[unit]}"


def printable(text: str) -> str:
    """One line without control characters: names of processes and files may contain any."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def listed(words: list[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
