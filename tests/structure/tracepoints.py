#!/usr/bin/env python3
"""The library has the tracepoints of the table, with their arguments, and docs/tracing.md has them too.

    tracepoints.py PROJECT LIBRARY     NUMALLOC_UPDATE=1 writes the page's table

Exit status 77 where the library was built without <sys/sdt.h>."""

import os
import re
import subprocess
import sys
from pathlib import Path

project, library = Path(sys.argv[1]), sys.argv[2]
table = (project / "src/base/tracepoints.def").read_text()
ENTRY = re.compile(r'^NUMALLOC_TRACEPOINT\((\w+), \(([^)]*)\),\s*\(([^)]*)\),\s*((?:"[^"]*"\s*)+)\)', re.M)
points = {
    name: (parameters.replace("std::", ""), names.split(", "), "".join(re.findall('"([^"]*)"', when)))
    for name, parameters, names, when in ENTRY.findall(table)
}
assert len(points) == table.count("\nNUMALLOC_TRACEPOINT("), "an entry is not understood"

page = project / "docs/tracing.md"
text = page.read_text()
head = text[: text.index("| --- | --- | --- |\n") + len("| --- | --- | --- |\n")]
rows = "".join(f"| `{name}` | {', '.join(names)} | {when} |\n" for name, (_, names, when) in points.items())
if os.environ.get("NUMALLOC_UPDATE"):
    page.write_text(head + rows)
elif text != head + rows:
    sys.exit("docs/tracing.md is not what the table says; run with NUMALLOC_UPDATE=1")

notes = subprocess.run(["readelf", "-n", "-W", library], capture_output=True, text=True, check=True).stdout
if "stapsdt" not in notes:
    print("the library was built without <sys/sdt.h>")
    sys.exit(77)
found: dict[str, set[int]] = {}
for name, arguments in re.findall(r"Provider: numalloc\s+Name: (\w+)\s+Location:.*\s+Arguments: ?(.*)", notes):
    found.setdefault(name, set()).add(len(arguments.split()))
faults = [f"{name} is not in the library" for name in points.keys() - found.keys()]
faults += [f"{name} is in the library and not in the table" for name in found.keys() - points.keys()]
faults += [f"{name} has {found[name]} arguments" for name in points.keys() & found.keys() if found[name] != {len(points[name][1])}]
print("\n".join(faults) or f"{len(found)} tracepoints")
sys.exit(bool(faults))
