"""Figures for people."""


def size(count: float | None) -> str:
    if count is None:
        return "-"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:,.0f} {unit}" if unit == "B" or abs(count) >= 100 else f"{count:.1f} {unit}"


def percent(share: float | None) -> str:
    if share is None:
        return "-"
    if 0 < share < 0.01:
        return "<1 %"
    return ">99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


def count(number: float | None) -> str:
    return "-" if number is None else f"{number:,.0f}"


def figure(number: float, unit: str) -> str:
    return size(number) if unit == "bytes" else count(number)


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def things(number: int, name: str) -> str:
    return f"{number:,} {name}" + ("" if number == 1 else "s")
