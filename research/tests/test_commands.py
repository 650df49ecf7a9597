"""The commands of research/: each is found by its name, from any folder, and what is wrong is one line."""

import subprocess
from pathlib import Path

import pytest
import typer
from limits import LIMIT

from research import cli

ROOT = Path(__file__).resolve().parents[2]


def research(*words: str, folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run([*cli.own_command(), *words], cwd=folder, capture_output=True, text=True, timeout=LIMIT)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_is_found_by_its_name(name):
    assert set(typer.main.get_command(cli.made([name])).commands) >= {name}


def test_the_readme_names_each_command():
    text = (ROOT / "research/README.md").read_text()
    assert all(f"research {name}" in text for name in cli.COMMANDS)


def test_it_runs_in_any_folder(tmp_path):
    done = research("--help", folder=tmp_path)
    assert done.returncode == 0 and all(f" {name} " in done.stdout for name in cli.COMMANDS)


def test_wrong_words_are_one_line_and_status_2(tmp_path):
    done = research("nonsense", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1) and "'nonsense'" in done.stderr
