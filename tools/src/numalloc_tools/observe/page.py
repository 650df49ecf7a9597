"""Finds, checks and reads the library's page of statistics in shared memory.

    header          64 bytes: magic, version, sizes and counts, the process's start, sequence, time of update
    names           u32 length, then names with a NUL after each: those of a node record, an empty one, those of a class's,
                    an empty one, those of the process's
    process record  u64 for each name; it begins at a multiple of 8
    node records    i64 node (-1: not in use, -2: interleaved), u64 for each name
    class records   u32 index of the node record, u32 bytes of an object, u64 for each name

All numbers are in the machine's byte order. `sequence` is odd while the library writes. Anybody may have written the
file: a page with any inconsistency is rejected."""

import os
import re
import stat
import struct
import time
from pathlib import Path

from numalloc_tools.observe.model import ClassRecord, NodeRecord, Page

FOLDER = Path("/dev/shm")
MAGIC = b"NUMASTAT"
VERSION = 2
HEADER = struct.Struct("=8sIIIIIIQQQI4x")
_SEQUENCE = struct.Struct("=Q")
_SEQUENCE_AT = 40
_FIRST_PID_NAMESPACE = 0xEFFFFFFC  # its number in every kernel
_MOST = 16 << 20  # bytes; a page of a thousand nodes has 4 MiB
_ATTEMPTS = 100
_PAUSE = 0.0005
NOT_IN_USE = -1
# The library leaves these at 0 in the page, since it would have to ask the kernel. The tools ask it themselves.
_LEFT_OUT = {"resident_bytes", "huge_bytes"}
_NAME = re.compile(r"numalloc-\d+-(\d+)")
_STATISTIC = re.compile("[a-z][a-z0-9_]{0,63}")
_INNERMOST = re.compile(r"^NStgid:.*?(\d+)$", re.MULTILINE)


def of(pid: int, folder: Path, started: int) -> Page | None:
    """The page of a process: `folder` is that of one of its threads in /proc. It is looked up in the /dev/shm that the
    process sees, by the PID that the process has there: a container may have another view of both."""
    innermost = _INNERMOST.search((folder / "status").read_text(errors="replace"))
    number = innermost[1] if innermost else str(pid)
    owner = folder.stat().st_uid
    try:
        candidates = list((folder / "root" / FOLDER.relative_to("/")).glob(f"numalloc-*-{number}"))
    except PermissionError:
        return None
    for path in candidates:
        if (content := _content(path, owner)) and (page := _parsed(content, started)):
            return page
    return None


def sees_all_processes() -> bool:
    """False in a container, which may share /dev/shm with processes that it does not see."""
    return os.stat("/proc/self/ns/pid").st_ino == _FIRST_PID_NAMESPACE


def remove_stale(folder: Path = FOLDER, proc: Path = Path("/proc")) -> None:
    """Removes the user's pages whose processes were killed before they could remove them."""
    if not sees_all_processes():
        return
    left = [path for path in folder.glob(f"numalloc-{os.geteuid()}-*") if _NAME.fullmatch(path.name)]
    if not left:
        return
    # Not by PID: a process of a container that shares /dev/shm has another PID here, but the same start.
    starts = _starts(proc)
    for path in left:
        content = _content(path, os.geteuid())
        if content and _header(content)[7] not in starts:
            path.unlink(missing_ok=True)


def _starts(proc: Path) -> set[int]:
    found = set()
    for path in proc.glob("[0-9]*/stat"):
        try:
            found.add(int(path.read_text(errors="replace").rpartition(")")[2].split()[19]))
        except (FileNotFoundError, ProcessLookupError, IndexError):
            continue
    return found


def _content(path: Path, owner: int) -> bytes | None:
    """A consistent copy of the page; None if it is not a page of that owner."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != owner or not HEADER.size <= about.st_size <= _MOST:
            return None
        for _ in range(_ATTEMPTS):
            content = os.pread(file, about.st_size, 0)
            if len(content) < HEADER.size or content[:8] != MAGIC:
                return None
            (before,) = _SEQUENCE.unpack_from(content, _SEQUENCE_AT)
            (after,) = _SEQUENCE.unpack(os.pread(file, _SEQUENCE.size, _SEQUENCE_AT))
            if before == after and before % 2 == 0:
                return content
            time.sleep(_PAUSE)
    finally:
        os.close(file)
    return None  # its writer died during an update


def _header(content: bytes) -> tuple:
    return HEADER.unpack_from(content)


def _parsed(content: bytes, started: int) -> Page | None:
    header = _header(content)
    _, version, header_bytes, nodes, node_bytes, classes, class_bytes, process_start, _, updated_at, process_bytes = header
    if version != VERSION or process_start != started or updated_at == 0:
        return None
    try:
        (length,) = struct.unpack_from("=I", content, header_bytes)
        names = content[header_bytes + 4 : header_bytes + 4 + length].decode().rstrip("\0").split("\0\0")
        node_names, class_names, process_names = (_names(part) for part in names)
        node_record, class_record = struct.Struct(f"=q{len(node_names)}Q"), struct.Struct(f"=II{len(class_names)}Q")
        process_record = struct.Struct(f"={len(process_names)}Q")
        process_at = (header_bytes + 4 + length + 7) & ~7
        nodes_at = process_at + process_bytes
        classes_at = nodes_at + nodes * node_bytes
        if header_bytes < HEADER.size or classes_at + classes * class_bytes > len(content):
            return None
        for record, size in ((process_record, process_bytes), (node_record, node_bytes), (class_record, class_bytes)):
            if record.size > size:
                return None
        found = []
        for index in range(nodes):
            node, *values = node_record.unpack_from(content, nodes_at + index * node_bytes)
            found.append(NodeRecord(node, {name: value for name, value in zip(node_names, values) if name not in _LEFT_OUT}))
        of_class = []
        for index in range(classes):
            place, size, *values = class_record.unpack_from(content, classes_at + index * class_bytes)
            of_class.append(ClassRecord(found[place].node, size, dict(zip(class_names, values))))
        of_process = dict(zip(process_names, process_record.unpack_from(content, process_at)))
    except (struct.error, ValueError, IndexError):
        return None
    used = tuple(record for record in found if record.node != NOT_IN_USE)
    of_used = tuple(record for record in of_class if record.node != NOT_IN_USE)
    if len({record.node for record in used}) < len(used) or len({(one.node, one.size) for one in of_used}) < len(of_used):
        return None
    return Page(updated_at / 1e9, of_process, used, of_used)


def _names(text: str) -> list[str]:
    """Checks names, which become names of metrics and are printed on terminals."""
    names = text.split("\0")
    if len(set(names)) < len(names) or not all(_STATISTIC.fullmatch(name) for name in names):
        raise ValueError(text)
    return names
