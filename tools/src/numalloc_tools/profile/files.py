"""Profile files: reads and writes them, and merges those of several processes."""

import gzip
import sys
import zlib
from pathlib import Path

from google.protobuf.message import DecodeError

from numalloc_tools.problem import Problem
from numalloc_tools.profile.proto import Profile

GZIP = b"\x1f\x8b"


_WRITTEN = "such as `numalloc profile -o FILE` writes"


def read(path: Path) -> Profile:
    return _parsed(path.read_bytes(), str(path))


def shown(path: Path) -> Profile:
    """The file of --show, which may be a pipe; - is standard input."""
    try:
        return _parsed(sys.stdin.buffer.read(), "standard input") if str(path) == "-" else read(path)
    except OSError as error:
        raise Problem(
            f"--show: {path} cannot be read ({error.strerror}); accepted: a profile, {_WRITTEN}, or - for standard input"
        ) from None


def _parsed(content: bytes, name: str) -> Profile:
    profile = Profile()
    try:
        profile.ParseFromString(gzip.decompress(content) if content.startswith(GZIP) else content)
    except (DecodeError, EOFError, zlib.error, gzip.BadGzipFile):
        profile.Clear()
    if not profile.sample_type or not profile.string_table or not _numbers_fit(profile):
        raise Problem(f"{name} is not a profile; accepted: a file in pprof's format, {_WRITTEN}")
    return profile


def _numbers_fit(profile: Profile) -> bool:
    strings, values = len(profile.string_table), len(profile.sample_type)
    texts = [kind.type for kind in (*profile.sample_type, profile.period_type)] + list(profile.comment)
    texts += [number for sample in profile.sample for label in sample.label for number in (label.key, label.str)]
    texts += [number for mapping in profile.mapping for number in (mapping.filename, mapping.build_id)]
    texts += [number for function in profile.function for number in (function.name, function.system_name, function.filename)]
    return all(0 <= number < strings for number in texts) and all(len(sample.value) == values for sample in profile.sample)


def write(profile: Profile, path: Path) -> None:
    path.write_bytes(gzip.compress(profile.SerializeToString()))


def merged(profiles: list[Profile]) -> Profile:
    """One profile of several processes. Their addresses are unrelated, so each keeps its own mappings."""
    whole = Profile()
    whole.CopyFrom(profiles[0])
    texts = {text: number for number, text in enumerate(whole.string_table)}

    def renumbered(profile: Profile, number: int) -> int:
        text = profile.string_table[number]
        if text not in texts:
            texts[text] = len(whole.string_table)
            whole.string_table.append(text)
        return texts[text]

    for part in profiles[1:]:
        shift = {
            "mapping": max((mapping.id for mapping in whole.mapping), default=0),
            "location": max((location.id for location in whole.location), default=0),
            "function": max((function.id for function in whole.function), default=0),
        }
        for mapping in part.mapping:
            new = whole.mapping.add()
            new.CopyFrom(mapping)
            new.id += shift["mapping"]
            new.filename, new.build_id = renumbered(part, mapping.filename), renumbered(part, mapping.build_id)
        for function in part.function:
            new = whole.function.add()
            new.CopyFrom(function)
            new.id += shift["function"]
            for field in ("name", "system_name", "filename"):
                setattr(new, field, renumbered(part, getattr(function, field)))
        for location in part.location:
            new = whole.location.add()
            new.CopyFrom(location)
            new.id += shift["location"]
            if new.mapping_id:
                new.mapping_id += shift["mapping"]
            for line in new.line:
                line.function_id += shift["function"]
        for sample in part.sample:
            new = whole.sample.add()
            new.CopyFrom(sample)
            new.location_id[:] = [number + shift["location"] for number in sample.location_id]
            for label in new.label:
                label.key, label.str = renumbered(part, label.key), renumbered(part, label.str)
        whole.comment.extend(renumbered(part, number) for number in part.comment)
        whole.duration_nanos = max(whole.duration_nanos, part.duration_nanos)
    return whole
