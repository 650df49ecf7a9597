"""The guest's kernel: Debian's or Ubuntu's, a cloud kernel if there is one; serial lines and NUMA code are built in."""

import platform
import shutil
from pathlib import Path

from numalloc_tools import cache
from numalloc_tools.guest import packages
from numalloc_tools.guest.architecture import Architecture, named
from numalloc_tools.problem import Problem


def image(own: Path | None = None, architecture: Architecture | None = None, page_size: str = "4K") -> Path:
    """The kernel to boot: `own`, otherwise the one in the cache, otherwise one fetched with apt."""
    architecture = architecture or named("")
    if own is not None:
        if not is_whole(own):
            raise Problem(f"--kernel: {own} is not a complete kernel; accepted: a bzImage or an arm64 Image such as /boot/vmlinuz-*")
        return own
    if page_size not in architecture.kernels:
        raise Problem(
            f"--page-size: Debian has no kernel of {architecture.name} with pages of {page_size}; "
            f"accepted: {', '.join(architecture.kernels)}, or a kernel of your own with --kernel"
        )
    if found := kept(architecture, page_size):
        return found
    metapackage, _ = _of_distribution(architecture, page_size)
    package = packages.real_package(metapackage, "linux-image-", architecture)
    if fetched := _in_folder(packages.unpacked(package, architecture)):
        return fetched
    raise Problem(f"{package} contains no complete kernel; name your own with --kernel", 125)


def kept(architecture: Architecture | None = None, page_size: str = "4K") -> Path | None:
    """The kernel in the cache, if any; fetches nothing."""
    architecture = architecture or named("")
    _, flavour = _of_distribution(architecture, page_size)
    suffix = f":{architecture.debian}" if architecture.foreign else ""
    for folder in sorted(cache.directory("packages").glob(f"linux-image-*-{flavour}{suffix}"), reverse=True):
        if found := _in_folder(folder):
            return found
        shutil.rmtree(folder, ignore_errors=True)  # damaged
    return None


def _of_distribution(architecture: Architecture, page_size: str) -> tuple[str, str]:
    """The package that depends on the newest kernel, and how that one's name ends."""
    package = architecture.kernels[page_size]
    if not architecture.foreign and page_size == "4K" and _on_ubuntu():
        return "linux-image-virtual", "generic"
    return package, package.removeprefix("linux-image-")


def _on_ubuntu() -> bool:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return False
    return "ubuntu" in [release["ID"], *release.get("ID_LIKE", "").split()]


def _in_folder(folder: Path) -> Path | None:
    return next((path for path in (folder / "boot").glob("vmlinuz-*") if is_whole(path)), None)


def is_whole(path: Path) -> bool:
    """Whether the file is a kernel of the length in its header (the boot protocols of x86 and of arm64)."""
    try:
        with path.open("rb") as file:
            head = file.read(1024)
            length = file.seek(0, 2)
    except OSError:
        return False
    if head[0x38:0x3C] == b"ARMd":
        return length >= _arm64_bytes(head)
    if head[0x202:0x206] != b"HdrS":
        return False
    setup_sectors = head[0x1F1] or 4
    paragraphs = int.from_bytes(head[0x1F4:0x1F8], "little")
    return length >= (setup_sectors + 1) * 512 + paragraphs * 16


def _arm64_bytes(head: bytes) -> int:
    """The length of the file, from the sections of a kernel that is also an EFI program, as Debian's are. In another kernel
    the header has only the length in memory, which includes zeroed memory that is not in the file."""

    def number(at: int, size: int) -> int:
        return int.from_bytes(head[at : at + size], "little")

    program = number(0x3C, 4)
    if program == 0 or head[program : program + 4] != b"PE\0\0":
        return number(0x10, 8) * 3 // 4
    first = program + 24 + number(program + 20, 2)
    sections = range(first, first + 40 * number(program + 6, 2), 40)
    return max(number(section + 16, 4) + number(section + 20, 4) for section in sections)
