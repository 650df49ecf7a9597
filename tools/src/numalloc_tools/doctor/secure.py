"""Secure execution: programs that run with more privileges than their user. The loader then ignores an LD_PRELOAD that
names a path, and the library reads no options."""

import os
import stat
from pathlib import Path

_CAPABILITIES = "security.capability"


def reason(path: Path, no_new_privileges: bool) -> tuple[str, bool] | None:
    """Why the program runs in secure mode, and whether it does for this user; None if it never does."""
    facts = path.stat()
    if no_new_privileges or os.statvfs(path).f_flag & os.ST_NOSUID:
        return None  # the bits have no effect
    if facts.st_mode & stat.S_ISUID:
        return f"setuid to user {facts.st_uid}", facts.st_uid != os.getuid()
    # Without execute permission for the group, the bit means something else.
    if facts.st_mode & stat.S_ISGID and facts.st_mode & stat.S_IXGRP:
        return f"setgid to group {facts.st_gid}", facts.st_gid != os.getgid()
    try:
        os.getxattr(path, _CAPABILITIES)
    except OSError:
        return None
    return "given capabilities (setcap)", os.getuid() != 0
