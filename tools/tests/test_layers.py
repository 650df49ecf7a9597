"""The layers of the tools: commands above shared modules. No command imports another's package, no shared module
imports a command, and no module or package imports itself through others."""

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


def part_of(module: str) -> str:
    """The package below numalloc_tools, or the module that lies there."""
    return module.split(".")[1] if "." in module else module


def command_of(module: str) -> str:
    """Empty for a shared module."""
    return part if (part := part_of(module)) in COMMANDS.values() else ""


def parts(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {part_of(name): set() for name in imports}
    for name, others in imports.items():
        found[part_of(name)] |= {part_of(other) for other in others} - {part_of(name)}
    return found


def crossings(imports: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Imports of a command's modules from outside of its package."""
    pairs = [(one, other) for one, others in imports.items() for other in sorted(others)]
    return [(one, other) for one, other in pairs if command_of(other) and command_of(one) != command_of(other)]


def circles(imports: dict[str, set[str]]) -> list[str]:
    """What is left when all that import none of the rest are taken away, again and again, and so those that none imports."""
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


def test_no_module_or_package_imports_itself_through_others():
    assert not circles(graph())
    assert not circles(parts(graph()))


def test_the_rules_find_what_breaks_them():
    known = {f"{PACKAGE}.{name}": set() for name in ("run.command", "bench.command", "style")}
    assert crossings(known) == []
    across = known | {f"{PACKAGE}.run.command": {f"{PACKAGE}.bench.command"}, f"{PACKAGE}.style": {f"{PACKAGE}.bench.command"}}
    assert [one for one, _ in crossings(across)] == [f"{PACKAGE}.run.command", f"{PACKAGE}.style"]
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]
    apart = {f"{PACKAGE}.{one}": {f"{PACKAGE}.{other}"} for one, other in (("a.one", "b.one"), ("b.two", "a.two"))}
    assert circles(parts(apart)) == ["a", "b"]
