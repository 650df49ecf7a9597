"""Findings as text and as JSON."""

from rich.console import Console
from rich.text import Text

from numalloc_tools.doctor.finding import BAD, NOTE, OK, SEVERITIES, WARNING, Finding, worst
from numalloc_tools.machine.words import count, printable

_STYLES = {OK: "green", NOTE: "cyan", WARNING: "yellow", BAD: "bold red"}
_INDENT = 9


def show(findings: list[Finding], subject: str, console: Console) -> None:
    console.print(Text(printable(subject), style="bold"))
    console.print()
    for finding in sorted(findings, key=lambda one: SEVERITIES.index(one.severity), reverse=True):
        head = Text(f"{finding.severity:<{_INDENT}}", style=_STYLES[finding.severity])
        style = "default" if finding.severity == OK else "bold"
        arrow = "-> " if console.options.ascii_only else "→ "
        lines = [Text(line, style) for line in _wrapped(finding.what, console)]
        lines += [Text(line) for line in _wrapped(finding.why, console) if finding.why]
        for mend in finding.mend:
            first, *rest = _wrapped(arrow + mend, console)
            lines += [Text(arrow, "dim").append(first.removeprefix(arrow), "green"), *(Text(line, "green") for line in rest)]
        for line in lines:
            console.print(head + line)
            head = Text(" " * _INDENT)
    console.print()
    console.print(_sum(findings))


def _wrapped(text: str, console: Console) -> list[str]:
    return [line.plain.rstrip() for line in Text(printable(text)).wrap(console, max(20, console.width - _INDENT))]


def _sum(findings: list[Finding]) -> str:
    numbers = [(severity, sum(finding.severity == severity for finding in findings)) for severity in reversed(SEVERITIES)]
    words = {BAD: "bad", WARNING: "warning", NOTE: "note", OK: "ok"}
    return ", ".join(
        count(number, words[severity], words[severity] + ("s" if severity in (WARNING, NOTE) else ""))
        for severity, number in numbers
        if number
    )


def as_json(findings: list[Finding], target: dict) -> dict:
    listed = [{"severity": one.severity, "name": one.name, "what": one.what, "why": one.why, "mend": one.mend} for one in findings]
    return {"target": target, "worst": worst(findings), "findings": listed}
