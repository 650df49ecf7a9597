"""A command of research/ in the tests' own process, so that they can put something else in the place of the emulator."""

import sys

import pytest

from research import cli


def status_of(*words: str) -> int:
    before, sys.argv = sys.argv, ["research", *words]
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code
    finally:
        sys.argv = before
