"""Prints a header for doxygen: the same lines, with comments that doxygen reads.

    doxygen_filter.py HEADER

The headers have plain comments. A comment before a declaration describes it, as does one after it on the same line.
The included tables of statistics become members of the structs.
"""

import re
import sys
from pathlib import Path

header = Path(sys.argv[1])
text = header.read_text()

# The tables become members, each with its description.
table = (header.parent / "statistics.def").read_text()


def members(match: re.Match) -> str:
    rows = re.findall(rf'^{match[1]}\((\w+), "([^"]*)",\s*((?:"[^"]*"\s*)+)\)', table, re.M)
    joined = [(name, unit, "".join(re.findall('"([^"]*)"', strings))) for name, unit, strings in rows]
    return "".join(f"    unsigned long long {name}; /**< {what} ({unit}) */\n" for name, unit, what in joined)


text = re.sub(r'#define (NUMALLOC_\w*STATISTIC)\(.*\n#include "statistics.def"\n', members, text)
# The first comment describes the file, "----" begins a section, other comments describe the next declaration.
text = re.sub(r"\A/\* ", "/** @file\n * ", text)
text = re.sub(
    r"\A// (.*(?:\n//.*)*)",
    lambda m: "/** @file\n * @code{.unparsed}\n" + re.sub(r"^// ?", " * ", m[0], flags=re.M) + "\n * @endcode\n */",
    text,
)
text = re.sub(r"^( *)/\* (?!----)(?!\S+ \*/$)", r"\1/** ", text, flags=re.M)
text = re.sub(r"^([ \t]*[^\s/*].*[,;][ \t]*)/\* ", r"\1/**< ", text, flags=re.M)
text = re.sub(r"^( *NUMALLOC_[A-Z_]+[ \t]*|#define NUMALLOC_[^\n/]*)/\* ", r"\1/**< ", text, flags=re.M)
# Doxygen does not see the macros of attributes.
text = re.sub(r"(/\*\* GCC warns.*?)(?=\n/\*\* As realloc)", r"/** @cond */\n\1\n/** @endcond */", text, flags=re.S)
if header.suffix == ".hpp":
    text = re.sub(r"^( *)// ", r"\1/// ", text, flags=re.M)
    text = re.sub(r"^( +\S.*;) +// ", r"\1 ///< ", text, flags=re.M)
sys.stdout.write(text)
