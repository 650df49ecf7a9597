"""Brings what a row needs: Debian's packages into the system, all else into a folder of the build."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from matrix.cell import variables
from matrix.table import Row

_NOTHING_STARTS = Path("/usr/sbin/policy-rc.d")
_SECONDS = 1800.0


class NotInstallable(Exception):
    pass


class Installer:
    def __init__(self, cache: Path, allowed: bool) -> None:
        self._cache = cache
        self._allowed = allowed
        self._updated = False

    def packages(self, rows: list[Row]) -> list[str]:
        """Debian's packages of all rows, at one go where that is possible; gives those that could not be had."""
        wanted = list(dict.fromkeys(package for row in rows for package in row.apt if not _is_installed(package)))
        if wanted:
            try:
                self._apt(wanted)
            except NotInstallable:
                for package in wanted:
                    with suppress(NotInstallable):
                        self._apt([package])
        return [package for package in wanted if not _is_installed(package)]

    def bring(self, row: Row) -> None:
        if missing := [package for package in row.apt if not _is_installed(package)]:
            self._apt(missing)
        if row.pypi:
            self._once("pypi", row.pypi, self._pip)
        if row.npm:
            self._once("npm", row.npm, lambda names: self._call(["npm", "install", "--silent", "--prefix", f"{self._cache}/npm", *names]))
        for crate in row.cargo:
            self._once("cargo", [crate], self._cargo)
        if row.build:
            self._build(row)

    def _apt(self, packages: list[str]) -> None:
        if not shutil.which("apt-get"):
            raise NotInstallable("no apt-get here")
        if not self._allowed:
            raise NotInstallable(f"not installed: {' '.join(packages)}")
        if os.geteuid() != 0:
            raise NotInstallable(f"needs root to install {' '.join(packages)}")
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=600"]
        if not self._updated:
            subprocess.run([*apt, "update"], capture_output=True, timeout=_SECONDS, env=environment)
            self._updated = True
        with _no_service_starts():
            self._call([*apt, "install", "-y", "--no-install-recommends", *packages], environment)

    def _pip(self, names: list[str]) -> None:
        if not (self._cache / "venv/bin/python").exists():
            self._call(["/usr/bin/python3", "-m", "venv", f"{self._cache}/venv"])
        self._call([f"{self._cache}/venv/bin/pip", "install", "-q", "--disable-pip-version-check", *names])

    def _cargo(self, names: list[str]) -> None:
        self._call(["cargo", "install", "-q", "--locked", "--root", f"{self._cache}/cargo", *names])

    def _once(self, kind: str, names: list[str], bring) -> None:
        """Registries are asked once for a set of names; later runs need no network."""
        mark = self._cache / "installed" / f"{kind}-{'-'.join(names).replace('/', '_')}"
        if mark.exists():
            return
        if not self._allowed:
            raise NotInstallable(f"not installed: {' '.join(names)} ({kind})")
        bring(names)
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()

    def _build(self, row: Row) -> None:
        environment = {"HOME": str(self._cache), **variables(row, self._cache)}
        folder = Path(environment["BUILD"])
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for command in row.build:
            self._call(["/bin/sh", "-c", command], environment, folder)

    def _call(self, command: list[str], environment: dict[str, str] | None = None, folder: Path | None = None) -> None:
        self._cache.mkdir(parents=True, exist_ok=True)
        environment = environment if environment is not None else os.environ | {"CARGO_HOME": f"{self._cache}/cargo-home"}
        try:
            done = subprocess.run(
                command,
                env=environment,
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotInstallable(f"{Path(command[0]).name}: {error}") from None
        if done.returncode:
            said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            faults = [line for line in said if line.lower().startswith(("e:", "error"))] or said or ["no reason given"]
            raise NotInstallable(f"{Path(command[0]).name}: {faults[-1].strip()[:200]}")


def version(row: Row, cache: Path) -> str:
    """What the program says of itself, without the library."""
    if not row.version:
        return ""
    environment = {"HOME": str(cache), **variables(row, cache)}
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", row.version],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
    except subprocess.TimeoutExpired:
        return ""
    return (done.stdout.strip().splitlines() or [""])[0][:60] if done.returncode == 0 else ""


def _is_installed(package: str) -> bool:
    query = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
    return subprocess.run(query, capture_output=True, text=True).stdout == "installed"


@contextmanager
def _no_service_starts() -> Iterator[None]:
    """Debian's servers start by themselves when they are installed, unless this file says no."""
    if _NOTHING_STARTS.exists():
        yield
        return
    _NOTHING_STARTS.write_text("#!/bin/sh\nexit 101\n")
    _NOTHING_STARTS.chmod(0o755)
    try:
        yield
    finally:
        _NOTHING_STARTS.unlink()
