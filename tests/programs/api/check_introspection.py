"""Reads what print_introspection prints, as glibc's callers do: malloc_info as XML with the
elements and attributes that glibc writes, malloc_stats as the lines of totals."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

LIVE = 5000 * 5000 + (20 << 20)

run = subprocess.run(sys.argv[1:], capture_output=True, text=True, timeout=300)
assert run.returncode == 0, (run.returncode, run.stderr)

root = ElementTree.fromstring(run.stdout)
assert root.tag == "malloc" and root.get("version") == "1", root.attrib
heaps = root.findall("heap")
assert heaps, "no <heap>"
for number, heap in enumerate(heaps):
    assert heap.get("nr") == str(number), heap.attrib
    assert heap.find("sizes") is not None


def value(element, tag, kind, attribute="size"):
    for found in element.findall(tag):
        if found.get("type") == kind:
            return int(found.get(attribute))
    raise AssertionError(f'no <{tag} type="{kind}" {attribute}=...>')


for kind in ("fast", "rest", "mmap"):
    value(root, "total", kind, "count")
    value(root, "total", kind, "size")
system = value(root, "system", "current")
mapped = value(root, "total", "mmap")
assert value(root, "system", "max") >= system
aspace = value(root, "aspace", "total")
value(root, "aspace", "mprotect")
assert system + mapped >= LIVE, (system, mapped, LIVE)
assert aspace + mapped >= LIVE, aspace
free = value(root, "total", "fast") + value(root, "total", "rest")
used = system + mapped - free
assert 0.9 * LIVE <= used <= 1.5 * LIVE, f"used by subtraction {used}, live {LIVE}"
for element in heaps:
    for tag, kind in (("system", "current"), ("system", "max"), ("aspace", "total")):
        value(element, tag, kind)

# malloc_stats: no format is promised, but it must say something with the amounts in it, on stderr.
numbers = [int(n) for n in re.findall(r"\d+", run.stderr)]
assert any(n >= 20 << 20 for n in numbers), run.stderr
print("malloc_info and malloc_stats read well")
