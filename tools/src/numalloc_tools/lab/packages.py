"""Debian packages, downloaded and unpacked into the cache without being installed."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from numalloc_tools.lab import cache
from numalloc_tools.problem import Problem


def unpacked(package: str) -> Path:
    """The folder that holds the files of `package`; downloads it the first time."""
    kept = cache.directory("packages") / package
    if kept.is_dir():
        return kept
    for tool in ("apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            raise Problem(f"{package} is not in the cache and {tool} is missing; packages can be fetched on Debian", 125)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=f".{package}-") as work:
        _call(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package], package, work)
        archive = next(Path(work).glob("*.deb"))
        content = Path(work, "content")
        _call(["dpkg-deb", "-x", str(archive), str(content)], package, work)
        try:
            os.rename(content, kept)  # in one step: several labs may be fetching at once
        except OSError:
            if not kept.is_dir():
                raise
    return kept


def real_package(metapackage: str, prefix: str) -> str:
    """The package starting with `prefix` that `metapackage` depends on: kernels are versioned that way."""
    if not shutil.which("apt-cache"):
        raise Problem(f"apt-cache is missing, so {metapackage} cannot be looked up; give your own kernel with --kernel", 125)
    listing = subprocess.run(["apt-cache", "depends", metapackage], capture_output=True, text=True).stdout
    for line in listing.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == "Depends:" and words[1].startswith(prefix):
            return words[1]
    raise Problem(f"apt knows no package {metapackage}; run apt-get update, or give your own kernel with --kernel", 125)


def _call(command: list[str], package: str, work: str) -> None:
    done = subprocess.run(command, cwd=work, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Problem(f"{command[0]} could not fetch {package}: {reason} (if the package is too old, run apt-get update)", 125)
