"""Archives by their names: .tar.gz by Python's own module, .tar.zst by the program zstd."""

import gzip
import io
import subprocess
import tarfile
import zlib
from pathlib import Path

from numalloc_tools.checks import require_folder
from numalloc_tools.problem import Problem

ACCEPTED = "a name that ends in .tar.gz or .tar.zst"


def check_name(path: Path, flag: str) -> None:
    if not path.name.endswith((".tar.gz", ".tar.zst")):
        raise Problem(f"{flag}: {path} has an unknown ending; accepted: {ACCEPTED}")
    require_folder(path, flag)


def write(path: Path, top: str, texts: dict[str, bytes], files: dict[str, Path]) -> None:
    """At once or not at all. Scripts among the texts can be run."""
    part = path.with_name(f".{path.name}.part")
    try:
        with open(part, "wb") as file:
            if path.name.endswith(".gz"):
                with tarfile.open(fileobj=file, mode="w:gz", dereference=True) as tar:
                    _fill(tar, top, texts, files)
            else:
                with _zstd(["-q", "-10", "-c"], stdin=subprocess.PIPE, stdout=file) as packer:
                    assert packer.stdin is not None
                    with tarfile.open(fileobj=packer.stdin, mode="w|", dereference=True) as tar:
                        _fill(tar, top, texts, files)
                    packer.stdin.close()
                    if packer.wait():
                        raise Problem(f"{path}: zstd ended with status {packer.returncode}")
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)


def _fill(tar: tarfile.TarFile, top: str, texts: dict[str, bytes], files: dict[str, Path]) -> None:
    for name, text in texts.items():
        entry = tarfile.TarInfo(f"{top}/{name}")
        entry.size, entry.mode = len(text), 0o755 if name.endswith(".sh") else 0o644
        tar.addfile(entry, io.BytesIO(text))
    for name, path in sorted(files.items()):
        tar.add(path, f"{top}/{name}", recursive=False)


def unpack(path: Path, folder: Path) -> None:
    """What would lie outside of the folder, or is no plain file, is refused."""
    try:
        if path.name.endswith(".zst"):
            with (
                _zstd(["-q", "-d", "-c", str(path)], stdout=subprocess.PIPE) as unpacker,
                tarfile.open(fileobj=unpacker.stdout, mode="r|") as tar,
            ):
                _extract(tar, path, folder)
        else:
            with tarfile.open(path) as tar:
                _extract(tar, path, folder)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Problem(
            f"{path} is no archive ({' '.join(str(error).split())}); accepted: a folder of results, .tar.gz or .tar.zst"
        ) from None


def _extract(tar: tarfile.TarFile, path: Path, folder: Path) -> None:
    for member in tar:
        target = (folder / member.name).resolve()
        if not target.is_relative_to(folder.resolve()) or not (member.isfile() or member.isdir()):
            raise Problem(f"{path}: '{member.name}' is not a plain file below its folder; accepted: what a bundle's run.sh has packed")
        if member.isdir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        content = tar.extractfile(member)
        assert content is not None, member.name
        target.write_bytes(content.read())


def _zstd(words: list[str], **more) -> subprocess.Popen:
    try:
        return subprocess.Popen(["zstd", *words], **more)
    except OSError:
        raise Problem("zstd is not installed; accepted: apt install zstd, or a name that ends in .tar.gz") from None
