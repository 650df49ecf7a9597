"""The C compiler, which the user must install."""

import os
import shutil

from numalloc_tools.problem import Problem


def compiler() -> str:
    found = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not found:
        raise Problem("numalloc bench needs a C compiler; install the Debian package gcc")
    return found
