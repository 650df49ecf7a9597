"""gcc -O2 on a C file of many functions: the compiler's own mix of obstacks, hash tables and trees."""

import tempfile
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.launch.launcher import Ended
from numalloc_tools.programs import Work
from numalloc_tools.programs.real.command import measured

NAME, FAMILY, THREADS, QUICK = "gcc", "languages", (1,), True
DESCRIPTION = "gcc -O2 compiles a made-up C file; the object file must equal that without the allocator"
NEEDS = {"gcc": "gcc"}
_FUNCTIONS = 450
_FUNCTION = """
struct record{n} {{ int key, weight[{fields}]; struct record{n} *next; }};
static int visit{n}(struct record{n} *list, int limit) {{
    int sum = 0;
    for (; list && limit > 0; list = list->next, limit--)
        for (int i = 0; i < {fields}; i++)
            switch ((list->weight[i] + {n}) % 7) {{
            case 0: sum += list->key * i; break;
            case 1: sum ^= list->weight[({fields} - 1) - i] << (i % 5); break;
            case 2: sum -= list->key / (i + {n} + 1); break;
            default: sum += list->weight[i] > {n} ? limit : -i;
            }}
    return sum;
}}
int use{n}(void *list, int limit) {{ return visit{n}(list, limit) + visit{n}(list, limit / 2); }}
"""


def run(allocator: Allocator, work: Work) -> Ended:
    count = max(5, round(_FUNCTIONS * work.scale))
    text = "".join(_FUNCTION.format(n=n, fields=3 + n % 11) for n in range(count))
    with tempfile.TemporaryDirectory(prefix="numalloc-bench-") as folder:
        Path(folder, "made-up.c").write_text(text)
        return measured(["gcc", "-O2", "-c", "made-up.c", "-o", "made-up.o"], allocator, work, Path(folder), "made-up.o")
