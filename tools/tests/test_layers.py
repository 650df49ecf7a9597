"""The layers of the tools: commands above shared modules. No command imports another's package, no shared module
imports a command, and no module imports itself through others."""

import ast
from collections.abc import Iterator
from pathlib import Path

from numalloc_tools.cli import COMMANDS

SOURCES = Path(__file__).parents[1] / "src"
PACKAGE = "numalloc_tools"


def files() -> dict[str, Path]:
    found = {path.relative_to(SOURCES).with_suffix(""): path for path in (SOURCES / PACKAGE).rglob("*.py")}
    return {".".join(name.parts).removesuffix(".__init__"): path for name, path in found.items()}


def imported(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """Also inside functions: a module that is loaded later belongs to its layer all the same."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in modules)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}: write the whole name of the module"
            names = [f"{node.module}.{one.name}" for one in node.names]
            yield from {name if name in modules else node.module for name in names} & modules.keys()


def graph() -> dict[str, set[str]]:
    modules = files()
    return {name: {*imported(path, modules)} - {name} for name, path in modules.items()}


def command_of(module: str) -> str:
    """Empty for a shared module."""
    part = module.split(".")[1] if "." in module else ""
    return part if part in COMMANDS.values() else ""


def crossings(imports: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Imports of a command's modules from outside of its package."""
    pairs = [(one, other) for one, others in imports.items() for other in sorted(others)]
    return [(one, other) for one, other in pairs if command_of(other) and command_of(one) != command_of(other)]


def circles(imports: dict[str, set[str]]) -> list[str]:
    """The modules that are left when those are taken away, again and again, that import none of the rest."""
    left = dict(imports)
    while free := [name for name, others in left.items() if not others & left.keys()]:
        for name in free:
            del left[name]
    while free := [name for name in left if not any(name in others for others in left.values())]:
        for name in free:
            del left[name]
    return sorted(left)


def test_commands_import_shared_modules_only():
    wrong = [f"{one} imports {other}" for one, other in crossings(graph())]
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_itself_through_others():
    assert not circles(graph())


def test_the_rules_find_what_breaks_them():
    known = {f"{PACKAGE}.{name}": set() for name in ("run.command", "bench.command", "style")}
    assert crossings(known) == []
    across = known | {f"{PACKAGE}.run.command": {f"{PACKAGE}.bench.command"}, f"{PACKAGE}.style": {f"{PACKAGE}.bench.command"}}
    assert [one for one, _ in crossings(across)] == [f"{PACKAGE}.run.command", f"{PACKAGE}.style"]
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]
