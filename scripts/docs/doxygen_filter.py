"""What doxygen reads instead of a header: the same lines, whose comments are for it too.

    doxygen_filter.py HEADER

The headers' comments are plain ones, for who reads them. A comment right before a declaration is about it, one
behind a declaration as well; the tables of statistics become the members that they are.
"""

import re
import sys
from pathlib import Path

header = Path(sys.argv[1])
text = header.read_text()

# The tables: members with what they count.
table = (header.parent / "statistics.def").read_text()


def members(match: re.Match) -> str:
    rows = re.findall(rf'^{match[1]}\((\w+), "([^"]*)", "([^"]*)"\)', table, re.M)
    return "".join(f"    unsigned long long {name}; /**< {what} ({unit}) */\n" for name, unit, what in rows)


text = re.sub(r'#define (NUMALLOC_\w*STATISTIC)\(.*\n#include "statistics.def"\n', members, text)
# In the order of the file: the first comment is the file's, "----" heads a part, others are about what follows.
text = re.sub(r"\A/\* ", "/** @file\n * ", text)
text = re.sub(
    r"\A// (.*(?:\n//.*)*)",
    lambda m: "/** @file\n * @code{.unparsed}\n" + re.sub(r"^// ?", " * ", m[0], flags=re.M) + "\n * @endcode\n */",
    text,
)
text = re.sub(r"^( *)/\* (?!----)(?!\S+ \*/$)", r"\1/** ", text, flags=re.M)
text = re.sub(r"^([ \t]*[^\s/*].*[,;][ \t]*)/\* ", r"\1/**< ", text, flags=re.M)
text = re.sub(r"^( *NUMALLOC_[A-Z_]+[ \t]*|#define NUMALLOC_[^\n/]*)/\* ", r"\1/**< ", text, flags=re.M)
# Attributes and the like are the header's own business.
text = re.sub(r"(/\*\* GCC warns.*?)(?=\n/\*\* As realloc)", r"/** @cond */\n\1\n/** @endcond */", text, flags=re.S)
if header.suffix == ".hpp":
    text = re.sub(r"^( *)// ", r"\1/// ", text, flags=re.M)
    text = re.sub(r"^( +\S.*;) +// ", r"\1 ///< ", text, flags=re.M)
sys.stdout.write(text)
