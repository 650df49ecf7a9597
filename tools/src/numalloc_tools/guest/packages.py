"""Downloads Debian packages and unpacks them into the cache, without installing them. Packages of another architecture
use lists of their own, so that this machine's apt does not see them."""

import fcntl
import os
import platform
import re
import shutil
import tempfile
from functools import cache as cache_result
from pathlib import Path

from numalloc_tools import cache
from numalloc_tools.guest import apt
from numalloc_tools.guest.architecture import Architecture, named
from numalloc_tools.problem import Problem

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def unpacked(package: str, architecture: Architecture | None = None) -> Path:
    """The folder with the files of `package`; downloads it the first time."""

    def fetch(content: Path) -> None:
        _check_tools(package)
        options = _lists_of(architecture) if architecture is not None and architecture.foreign else []
        with tempfile.TemporaryDirectory(dir=content.parent) as work:
            _call(["apt-get", "-q", *options, "-o", "APT::Sandbox::User=root", "download", package], package, work)
            _call(["dpkg-deb", "-x", str(next(Path(work).glob("*.deb"))), str(content)], package, work)

    return cache.kept(_folder(package, architecture), fetch)


def unpacked_by_any_name(names: tuple[str, ...], architecture: Architecture) -> Path:
    """The same for a package that releases name differently."""
    for name in names:
        if (folder := _folder(name, architecture)).is_dir():
            return folder
    failures = []
    for name in names:
        try:
            return unpacked(name, architecture)
        except Problem as problem:
            failures.append(problem)
    raise failures[0]


def _folder(package: str, architecture: Architecture | None) -> Path:
    name = f"{package}:{architecture.debian}" if architecture is not None and architecture.foreign else package
    return cache.directory("packages") / name


def _check_tools(what: str) -> None:
    for tool in ("apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            raise Problem(f"{what} is not in the cache and {tool} is missing; packages can be fetched on Debian", 125)


def unpack_backports(names: tuple[str, ...], folder: Path) -> None:
    """Debian's backports of these packages, and their dependencies that are not installed here, in one folder."""
    _check_tools(f"the backport of {names[0]}")
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"] + "-backports"
    apt_get = ["apt-get", "-q", *_lists_with_backports()]
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        plan = _call([*apt_get, "--simulate", "--no-install-recommends", "-t", suite, "install", *names], names[0], work)
        missing = re.findall(r"^Inst (\S+) \(", plan, re.MULTILINE)  # an installed package has its version next
        needed = [f"{name}/{suite}" for name in names] + [name for name in missing if name not in names]
        _call([*apt_get, "download", *needed], names[0], work)
        for archive in sorted(Path(work).glob("*.deb")):
            _call(["dpkg-deb", "-x", str(archive), str(folder)], archive.name, work)


def real_package(metapackage: str, prefix: str, architecture: Architecture | None = None) -> str:
    """The package with `prefix` on which `metapackage` depends: kernels are versioned that way."""
    if not shutil.which("apt-cache"):
        raise Problem(f"apt-cache is missing, so {metapackage} cannot be looked up; give your own kernel with --kernel", 125)
    options = _lists_of(architecture) if architecture is not None and architecture.foreign else []
    answer = apt.asked(["apt-cache", *options, "depends", metapackage], good=lambda answer: _dependency(answer.stdout, prefix) is not None)
    if found := _dependency(answer.stdout, prefix):
        return found
    raise Problem(f"apt knows no package {metapackage}; run apt-get update, or give your own kernel with --kernel", 125)


def _dependency(listing: str, prefix: str) -> str | None:
    for line in listing.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == "Depends:" and words[1].startswith(prefix):
            return words[1]
    return None


def _mirror(suite: str) -> str:
    """The mirror from which this machine's apt gets the release."""
    targets = apt.asked(["apt-get", "indextargets", "--format", "$(REPO_URI) $(SUITE) $(CODENAME)", "Created-By: Packages"])
    for line in targets.stdout.splitlines():
        uri, *names = line.split()
        if suite in names:
            return uri
    raise Problem(f"apt has no lists of {suite}, which name its mirror; run apt-get update", 125)


@cache_result
def _lists_of(architecture: Architecture) -> list[str]:
    """Options that make apt use another architecture's lists, which are updated once per run."""
    folder = cache.directory("apt", architecture.debian)
    status = folder / "status"
    status.touch()
    return _own_lists(architecture.debian, folder, status)


@cache_result
def _lists_with_backports() -> list[str]:
    """The same for this machine's architecture, whose own lists may lack backports."""
    return _own_lists(named("").debian, cache.directory("apt", "backports"), Path("/var/lib/dpkg/status"))


def _own_lists(debian: str, folder: Path, status: Path) -> list[str]:
    release = platform.freedesktop_os_release()
    if release.get("ID") != "debian" or not os.path.exists(_KEYRING):
        raise Problem(f"packages of {debian} can be fetched on Debian with its keyring {_KEYRING}", 125)
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    suite = release["VERSION_CODENAME"]
    lines = [f"deb [arch={debian} signed-by={_KEYRING}] {_mirror(suite)} {name} main" for name in (suite, f"{suite}-backports")]
    (folder / "sources").write_text("\n".join(lines) + "\n")
    settings = {
        "APT::Architecture": debian,
        "APT::Architectures": debian,
        "APT::Sandbox::User": "root",
        "Dir::State::Lists": folder / "lists",
        "Dir::State::status": status,
        "Dir::Cache": folder,
        "Dir::Etc::SourceList": folder / "sources",
        "Dir::Etc::SourceParts": "/dev/null",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    with (folder / "refreshing").open("w") as lock:  # apt does not wait for another apt, and several labs may run
        fcntl.flock(lock, fcntl.LOCK_EX)
        _call(["apt-get", "-q", *options, "update"], f"the lists of {debian}", str(folder))
    return options


def _call(command: list[str], package: str, work: str) -> str:
    done = apt.asked(command, cwd=work)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Problem(f"{command[0]} could not fetch {package}: {reason} (if the package is too old, run apt-get update)", 125)
    return done.stdout
