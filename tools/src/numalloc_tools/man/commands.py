"""numalloc(1) and a page for each of its commands, from the same sources as --help."""

import inspect
import re

from numalloc_tools.man.roff import Page, bold, escaped, italic

EXIT_STATUS = (
    ("0", "Success."),
    ("1", "The command has run, and reports a problem."),
    ("2", "The command line or a file is wrong. One line on standard error names the fault and what is accepted."),
    ("125, 126, 127", "The tool itself failed; the program cannot be executed; the program was not found."),
    ("130", "Interrupted by Ctrl-C."),
)


def pages(root) -> list[Page]:
    """`root`: the command of typer."""
    return [*_of("numalloc", root, root.help)]


def _of(name: str, command, about: str | None) -> list[Page]:
    text = _plain(inspect.cleandoc(about or command.help or ""))
    summary, _, rest = text.partition("\n\n")
    page = Page(name.replace(" ", "-"), 1, _lowered(" ".join(summary.split()).rstrip(".")))
    children = {child: command.commands[child] for child in sorted(getattr(command, "commands", {}))}
    shown = {child: value for child, value in children.items() if not value.hidden}
    page.heading("Synopsis")
    page.lines += [f"{bold(name)} {_synopsis(command, bool(shown))}"]
    page.heading("Description")
    page.paragraph(f"{summary}\n\n{rest}")
    _parameters(page, command)
    if shown:
        page.heading("Commands")
        for child, value in shown.items():
            page.item(f"{bold(f'{name}-{child}'.replace(' ', '-'))}(1)", _plain(inspect.cleandoc(value.help or "")).partition("\n\n")[0])
    if name == "numalloc":
        page.heading("Exit status")
        for status, meaning in EXIT_STATUS:
            page.item(bold(status), meaning)
    page.heading("See also")
    others = [f"{name}-{child}".replace(" ", "-") + "(1)" for child in shown] if name == "numalloc" else ["numalloc(1)"]
    page.lines.append(escaped(", ".join([*others, "libnumalloc(3)", "numalloc(5)"])))
    return [page, *(one for child, value in shown.items() for one in _of(f"{name} {child}", value, None))]


def _parameters(page: Page, command) -> None:
    arguments = [one for one in command.params if one.param_type_name == "argument" and getattr(one, "help", None)]
    if arguments:
        page.heading("Arguments")
        for one in arguments:
            page.item(italic(_argument(one)), _plain(one.help))
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    if not options:
        return
    page.heading("Options")
    panels = list(dict.fromkeys(getattr(one, "rich_help_panel", None) for one in options))
    for panel in sorted(panels, key=lambda name: name is not None):
        if panel:
            page.subheading(panel)
        for one in options:
            if getattr(one, "rich_help_panel", None) == panel:
                page.item(_term(one), _help(one))


def _argument(one) -> str:
    name = one.metavar or (one.name.upper() + ("..." if one.nargs == -1 else ""))
    return name if one.required else f"[{name}]"


def _term(option) -> str:
    names = ", ".join(bold(name) for name in [*option.opts, *option.secondary_opts])
    if option.is_flag:
        return names
    return f"{names} {italic(option.metavar or _value_name(option))}"


def _value_name(option) -> str:
    """typer would write `--cpus-per-node N` for every number; the last word of the option's name is clearer."""
    return max(option.opts, key=len).lstrip("-").rpartition("-")[2].upper()


def _help(option) -> str:
    text = _plain(option.help or "")
    default = option.show_default if isinstance(option.show_default, str) else option.default
    if option.show_default is False or default in (None, "", (), []) or callable(default) or option.is_flag:
        return text
    return f"{text} [default: {default}]"


def _synopsis(command, is_group: bool) -> str:
    words = ["[OPTIONS]"] if any(one.param_type_name == "option" for one in command.params) else []
    words += [_argument(one) for one in command.params if one.param_type_name == "argument"]
    return escaped(" ".join(words + (["COMMAND [ARGS]..."] if is_group else [])))


def _plain(text: str) -> str:
    """Without rich's markup."""
    return re.sub(r"\[/?(?:bold|italic|cyan|green|red|dim)\]", "", text)


def _lowered(text: str) -> str:
    """Without an initial capital, as in other manual pages, unless it begins a name."""
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text
