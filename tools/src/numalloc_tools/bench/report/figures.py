"""The figures for which the results have data: each has a name, a heading, a text and a drawing."""

from collections.abc import Callable
from pathlib import Path

from matplotlib import pyplot as plt

from numalloc_tools.allocators import BOUND, OURS
from numalloc_tools.bench.report import bars, speedup
from numalloc_tools.bench.results import CPU, FULLEST, MEMORY, REMOTE, TIME, Summary
from numalloc_tools.html_page import Drawn
from numalloc_tools.style import as_svg, save


def draw_all(summary: Summary, folder: Path) -> list[Drawn]:
    names = summary.results.names
    plain = [name for name in names if ":" not in name]
    changed = [name for name in names if name.startswith(f"{OURS}:")]
    bound = [name for name in plain if name.endswith(BOUND) and name.removesuffix(BOUND) in names]
    base = summary.baseline
    drawn: list[Drawn] = []

    def add(name: str, heading: str, words: str, draw: Callable) -> None:
        figure = draw()
        if figure is None:
            return
        save(figure, folder / f"{name}.svg")
        drawn.append(Drawn(name, heading, words, as_svg(figure)))
        plt.close(figure)

    if len(plain) > 1:
        add(
            "time",
            f"Time, normalised to {base}",
            "Lower is better. A bar is the median of the rounds' own ratios; × marks runs that did not complete. The last "
            "group is the geometric mean over the programs that all allocators completed. (The paper's figure 3.)",
            lambda: bars.draw(summary, plain, TIME, base),
        )
        add(
            "cpu",
            f"Processor time, normalised to {base}",
            "User and system time of the whole process, including its preparations; for a server, without its clients. Lower "
            "is better. Other load on the machine affects it less than it affects time.",
            lambda: bars.draw(summary, plain, CPU, base),
        )
        add(
            "memory",
            f"Peak resident set, normalised to {base}",
            "Lower is better. From wait4(), without the memory of numalloc bench itself. (The paper's table 1 is below.)",
            lambda: bars.draw(summary, plain, MEMORY, base),
        )
        add(
            "speedup",
            f"Speedup by threads, relative to {base} with the fewest threads",
            "Higher is better. The work is the same for every number of threads. (The paper's figure 5.)",
            lambda: speedup.draw(summary, plain),
        )
    add(
        "remote-pages",
        "Remote pages, in a virtual machine of several nodes",
        "Percentage of the pages that are on another node than the thread that uses them. Lower is better.",
        lambda: bars.draw_shares(summary, names, REMOTE, "remote pages, %"),
    )
    add(
        "spread",
        "The fullest node, in a virtual machine of several nodes",
        "Percentage of the pages that are on the node with the most pages. With all pages on one node, that node's memory "
        "would be the bottleneck.",
        lambda: bars.draw_shares(summary, names, FULLEST, "pages on the fullest node, %"),
    )
    if bound:
        pairs = {name.removesuffix(BOUND): name for name in bound}
        add(
            "binding",
            "The effect of binding threads alone",
            "Each allocator with its defaults, normalised to itself with bound threads: above 1, binding makes it faster. "
            "(The paper's figure 6a.)",
            lambda: bars.draw(Summary(summary.results, base), list(pairs), TIME, None, pairs),
        )
    if changed and OURS in names:
        add(
            "ablations",
            f"{OURS} with one mechanism off or changed: time",
            f"Normalised to {OURS} with its defaults: above 1, the mechanism is a gain. (The paper's figures 6b, 7 and 8.)",
            lambda: bars.draw(Summary(summary.results, OURS), [OURS, *changed], TIME, OURS),
        )
        add(
            "ablations-memory",
            f"{OURS} with one mechanism off or changed: peak resident set",
            f"Normalised to {OURS} with its defaults.",
            lambda: bars.draw(Summary(summary.results, OURS), [OURS, *changed], MEMORY, OURS),
        )
    return drawn
