"""Packs what repeats the papers elsewhere, and reads back what came of it."""

import hashlib
import json
import time
from pathlib import Path
from typing import Annotated, Optional

import typer
from numalloc_tools.allocators import DEBIAN
from numalloc_tools.allocators.compared import BUNDLE, bundled_commit
from numalloc_tools.bench import manifest
from numalloc_tools.bench.results import read
from numalloc_tools.json_file import object_in
from numalloc_tools.machine.words import printable
from numalloc_tools.preload import our_library
from numalloc_tools.problem import Problem
from numalloc_tools.programs import own
from numalloc_tools.version import commit
from rich.console import Console

from research.paper import runs, table

FORMAT, VERSION = "numalloc-bundle", 1
_TOP = "numalloc-bundle"
# What research figures counts with. Experiments that need it, or a library with the options for experiments, say so
# where it is missing.
_PLUGIN = "numascope.so"
_RUN = Path(__file__).with_name("run.sh")
# Of the working tree, as they lie there: the tools look for each other's files so.
_TREE = (
    "bench/programs.json",
    "bench/real",
    "bench/support/scope_markers.h",
    "include",
    "tools/pyproject.toml",
    "tools/README.md",
    "tools/src",
    "research",
    "LICENSE",
)
_LEFT_OUT = ("__pycache__", ".egg-info", ".pytest_cache", ".identity.cpp", "CMakeFiles", ".cmake", ".a", "-build")


def register(app: typer.Typer) -> None:
    app.command("bundle")(bundle)
    app.command("read-bundle")(read_bundle)


def bundle(
    file: Annotated[Path, typer.Argument(help="The archive, .tar.gz or .tar.zst.", metavar="FILE")] = Path("numalloc-bundle.tar.gz"),
    library: Annotated[Optional[Path], typer.Option(help="The libnumalloc.so of a release build; else build/release's.")] = None,
) -> None:
    """Pack library, programs, tools and scripts into an archive that repeats the papers on another machine.

    There: unpack it, and sh run.sh. Its results come back as an archive that read-bundle reads.
    """
    from research.bundle import archive  # here: tarfile takes long to load, and few commands need it

    archive.check_name(file, "FILE")
    ours = our_library(library)
    root = next((folder for folder in ours.parents if (folder / "bench/programs.json").is_file()), None)
    if root is None:
        raise Problem(f"bench/programs.json is in no folder above {ours}; name the library of a working tree with --library")
    if missing := next((one.missing for one in own(ours) if one.missing), ""):
        raise Problem(missing)
    files = {path.relative_to(root).as_posix(): path for name in _TREE for path in _below(root / name)}
    libraries = {"libnumalloc.so": ours, "libnumalloc-binding.so": ours.with_name("libnumalloc-binding.so")}
    for name, path in libraries.items():
        if not path.is_file():
            raise Problem(f"{path} is missing; build it with cmake --build --preset release --target numalloc_binding")
        files[f"build/release/{name}"] = path
    if (plugin := ours.with_name(_PLUGIN)).is_file():
        files[f"build/release/{_PLUGIN}"] = plugin
    if (with_experiments := root / "build/experiments/libnumalloc.so").is_file():
        files["build/experiments/libnumalloc.so"] = with_experiments
    programs = ours.parent / "bench"
    files |= {f"build/release/bench/{path.relative_to(programs).as_posix()}": path for path in _below(programs) if _is_program(path)}
    texts = {"run.sh": _RUN.read_bytes(), "README.txt": _readme(root).encode()}
    known = commit(root) or bundled_commit(ours) or "unknown"
    told = {"format": FORMAT, "version": VERSION, "commit": known, "packed": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "files": len(files)}
    texts[BUNDLE] = (json.dumps(told, indent=1) + "\n").encode()
    sums = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    sums |= {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}
    texts["SHA256SUMS"] = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items())).encode()
    archive.write(file, _TOP, texts, files)
    typer.echo(
        f"{file}: {len(files) + len(texts)} files of {known}, {file.stat().st_size / 2**20:.0f} MiB; there: tar xf {file.name} && sh {_TOP}/run.sh"
    )


def _below(path: Path) -> list[Path]:
    found = [path] if path.is_file() else sorted(path.rglob("*"))
    return [one for one in found if one.is_file() and not any(part.endswith(_LEFT_OUT) for part in one.relative_to(path.parent).parts)]


def _is_program(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF" and not path.name.startswith("lib")


def _readme(root: Path) -> str:
    brought = manifest.programs(sorted((root / "bench/real").glob("*.toml")), set())
    packages = " ".join(
        sorted({package for one in brought for package in one.packages} | {package.names[0] for package in DEBIAN.values()})
    )
    return (
        f"{_RUN.read_text().split('set -eu')[0].replace('#!/bin/sh', '').replace('# ', '').replace('#', '').strip()}\n\n"
        f"What all experiments would like, on Debian 12: apt install gcc python3-venv {packages}\n"
        "sh run.sh --list shows the experiments. The lab's (lab, figures) also need what docs/lab.md names.\n"
    )


def read_bundle(
    results: Annotated[Path, typer.Argument(help="The archive that run.sh has packed, or its folder.", metavar="RESULTS")],
    output: Annotated[Path, typer.Option(help="Folder for the results, tables and pictures.", metavar="FOLDER")] = Path(
        "paper-from-elsewhere"
    ),
) -> None:
    """Read the results of a bundle, and write the same tables and pictures as `paper` does here."""
    folder = _folder(results, output)
    accepted = "accepted: what a bundle's run.sh has packed"
    kept = object_in(folder / "papers.json", f"{results}: papers.json cannot be read: ", accepted)
    if strange := _strange(kept):
        raise Problem(f"{results}: papers.json: {printable(strange)}; {accepted}")
    facts, names = kept["machine"], [one["id"] for one in kept["experiments"]]
    troubles = {name: trouble for one in kept["experiments"] for name, trouble in zip(one["runs"], one["troubles"], strict=False)}
    cpus, scale, sizes = facts["cpus"], kept["scale"], kept["paper"]
    for path in sorted((folder / "runs").glob("*.json")):
        read(path)
    calls, experiments = table.load()
    known = {one.id for one in experiments}
    if strange := next((name for name in names if name not in known), ""):
        raise Problem(f"{results}: '{printable(strange)}' is an experiment of another version; accepted: results of this version's bundle")
    how = runs.How(Path("/none"), folder.absolute(), cpus, scale, paper=sizes)

    def there(call: table.Call, how: runs.How) -> bool:
        return (how.document(call) if call.tool == "figures" else how.file(call)).is_file()

    from research.paper import page  # here: matplotlib takes longer to load than most commands run

    page.write([one for one in experiments if one.id in names], calls, how, facts, troubles, there)
    Console().print(
        f"{facts['processor']}, {facts['cpus']} CPUs, {facts['nodes']} nodes: {folder}/papers.md has {len(names)} experiments",
        highlight=False,
        markup=False,
    )


_FACTS: dict[str, type] = {"processor": str, "cpus": int, "nodes": int, "kernel": str, "system": str}


def _strange(kept: dict) -> str:
    """What a bundle's run.sh would not write, or nothing."""
    facts, scale, experiments = kept.get("machine"), kept.get("scale"), kept.get("experiments")
    if not isinstance(facts, dict):
        return "there is no machine"
    for name, kind in _FACTS.items():
        if type(facts.get(name)) is not kind:
            return f"machine: {name} is {json.dumps(facts.get(name))[:40]}"
    if scale is not None and (isinstance(scale, bool) or not isinstance(scale, int | float)):
        return f"scale is {json.dumps(scale)[:40]}"
    if type(kept.get("paper")) is not bool:
        return f"paper is {json.dumps(kept.get('paper'))[:40]}"
    for one in experiments if isinstance(experiments, list) else [None]:
        texts = [one.get("runs"), one.get("troubles")] if isinstance(one, dict) else [None]
        good = isinstance(one, dict) and isinstance(one.get("id"), str)
        if not good or not all(isinstance(some, list) and all(isinstance(text, str) for text in some) for some in texts):
            return f"an experiment is {json.dumps(one)[:40]}"
    return ""


def _folder(results: Path, output: Path) -> Path:
    if results.is_dir():
        return results
    if not results.is_file():
        raise Problem(f"{results} does not exist; accepted: the archive that a bundle's run.sh has packed, or its folder")
    from research.bundle import archive

    archive.unpack(results, output)
    return output / "results" if (output / "results").is_dir() else output
