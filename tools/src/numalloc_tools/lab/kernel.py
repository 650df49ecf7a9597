"""The guest's kernel: Debian's for clouds, whose serial lines and NUMA code are built in."""

import shutil
from pathlib import Path

from numalloc_tools.lab import cache, packages
from numalloc_tools.problem import Problem

METAPACKAGE = "linux-image-cloud-amd64"


def image(own: Path | None = None) -> Path:
    """The kernel to boot: `own`, else the one in the cache, else fetched with apt."""
    if own is not None:
        if not is_whole(own):
            raise Problem(f"--kernel: {own} is not a whole kernel; accepted: a bzImage such as /boot/vmlinuz-*")
        return own
    for folder in sorted(cache.directory("packages").glob("linux-image-*-cloud-amd64"), reverse=True):
        if kept := _in_folder(folder):
            return kept
        shutil.rmtree(folder, ignore_errors=True)  # damaged
    package = packages.real_package(METAPACKAGE, "linux-image-")
    if fetched := _in_folder(packages.unpacked(package)):
        return fetched
    raise Problem(f"{package} holds no whole kernel; give your own with --kernel", 125)


def _in_folder(folder: Path) -> Path | None:
    return next((path for path in (folder / "boot").glob("vmlinuz-*") if is_whole(path)), None)


def is_whole(path: Path) -> bool:
    """Whether the file is a kernel as long as its header says (the kernel's x86 boot protocol)."""
    try:
        with path.open("rb") as file:
            head = file.read(1024)
            length = file.seek(0, 2)
    except OSError:
        return False
    if head[0x202:0x206] != b"HdrS":
        return False
    setup_sectors = head[0x1F1] or 4
    paragraphs = int.from_bytes(head[0x1F4:0x1F8], "little")
    return length >= (setup_sectors + 1) * 512 + paragraphs * 16
