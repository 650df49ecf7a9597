"""`numalloc man`: every command, option, function and statistic has its place in a page, and the pages are sound."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from limits import LIMIT
from numalloc_tools.cli import made
from numalloc_tools.man import command, formats

PROJECT = Path(__file__).parents[2]


def numalloc(*arguments: str) -> subprocess.CompletedProcess:
    code = "from numalloc_tools.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=LIMIT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("man")
    done = numalloc("man", "--output", str(output))
    assert done.returncode == 0, done.stderr
    return output


def commands(root, name="numalloc"):
    yield name, root
    for child, value in getattr(root, "commands", {}).items():
        if not value.hidden:
            yield from commands(value, f"{name}-{child}")


def test_each_command_has_a_page_with_each_of_its_options(folder):
    root = command.typer.main.get_command(made())
    found = dict(commands(root))
    assert {"numalloc", "numalloc-demo", "numalloc-lab-run"} <= found.keys()
    for name, one in found.items():
        text = (folder / "man1" / f"{name}.1").read_text()
        for parameter in one.params:
            for option in parameter.opts if parameter.param_type_name == "option" and not parameter.hidden else []:
                assert f"\\fB{option}".replace("-", "\\-") in text, f"{name} {option}"


def test_the_library_page_has_the_whole_interface(folder):
    text = (folder / "man3" / "libnumalloc.3").read_text()
    symbols = re.findall(r"^NUMALLOC_SYMBOL\(((?:numalloc|psm)_\w+)\b", (PROJECT / "src/api/symbols.def").read_text(), re.M)
    assert len(symbols) > 30
    assert [name for name in symbols if f"{name}(" not in text] == []
    options = re.findall(r"^NUMALLOC_(?:LIVE_)?OPTION\((\w+)", (PROJECT / "include/numalloc/options.def").read_text(), re.M)
    assert len(options) > 10 and not [name for name in options if f"NUMALLOC_{name.upper()}" not in text]
    statistics = re.findall(r"^NUMALLOC_\w*STATISTIC\((\w+)", (PROJECT / "include/numalloc/statistics.def").read_text(), re.M)
    assert len(statistics) > 30 and not [name for name in statistics if f"\\fB{name}\\fP" not in text]


def test_groff_accepts_every_page(folder):
    if not shutil.which("groff"):
        pytest.skip("groff is not installed")
    for path in folder.rglob("*.[135]"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-c", str(path)], capture_output=True, text=True, timeout=LIMIT)
        assert (done.returncode, done.stderr) == (0, ""), path
        text = re.sub(".\x08", "", done.stdout)  # without the second strokes of bold and underlined letters
        assert re.search("^NAME$", text, re.MULTILINE) and text.count("\n") > 10, path


def test_a_page_without_a_terminal_is_its_text(folder):
    done = numalloc("man", "lab-run")
    assert done.stdout.startswith('.TH "NUMALLOC\\-LAB\\-RUN" "1"')
    assert numalloc("man", "numalloc.5").stdout.startswith('.TH "NUMALLOC" "5"')


def test_the_profile_on_the_page_is_valid(tmp_path):
    profile = tmp_path / "profile.toml"
    profile.write_text(formats.PROFILE)
    shown = numalloc("run", "--profile", str(profile), "--show", "--", "true")
    assert shown.returncode == 0, shown.stderr
    assert "NUMALLOC_PURGE_DELAY=-1" in shown.stdout and "NUMALLOC_MEMORY=interleave" in shown.stdout


def test_an_unknown_page_is_one_line():
    done = numalloc("man", "emacs")
    assert done.returncode == 2
    assert re.fullmatch(r"numalloc: man: there is no page 'emacs'; accepted: numalloc, .*numalloc\.5\n", done.stderr)


def test_a_folder_that_cannot_be_written_is_named():
    result = numalloc("man", "--output", "/etc/passwd")
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert "--output: /etc/passwd/man1 cannot be written (Not a directory); accepted:" in result.stderr
