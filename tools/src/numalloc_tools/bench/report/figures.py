"""The figures that the results have something for: each with a name, a heading, words, and a drawing."""

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
            "Lower is better. A bar is the median of each round's own ratio; × marks what did not complete. "
            "The last group is the geometric mean over what all completed. (The paper's figure 3.)",
            lambda: bars.draw(summary, plain, TIME, base),
        )
        add(
            "cpu",
            f"Processor time, normalised to {base}",
            "User and system time of the whole process, its preparations included; of a server without its clients. Lower is better. "
            "Busy neighbours on the machine change it less than time.",
            lambda: bars.draw(summary, plain, CPU, base),
        )
        add(
            "memory",
            f"Peak resident set, normalised to {base}",
            "Lower is better. From wait4; the harness's own memory is not in it. (The paper's table 1 is below.)",
            lambda: bars.draw(summary, plain, MEMORY, base),
        )
        add(
            "speedup",
            f"Speedup by threads, over {base} with the fewest",
            "Higher is better. The work is the same for every number of threads. (The paper's figure 5.)",
            lambda: speedup.draw(summary, plain),
        )
    add(
        "remote-pages",
        "Remote pages, in a virtual machine of several nodes",
        "Percent of the pages that lie on another node than the thread that uses them. Lower is better.",
        lambda: bars.draw_shares(summary, names, REMOTE, "remote pages, %"),
    )
    add(
        "spread",
        "The fullest node, in a virtual machine of several nodes",
        "Percent of the pages that lie on the node that has the most. Everything on one node would be local, and slow.",
        lambda: bars.draw_shares(summary, names, FULLEST, "pages on the fullest node, %"),
    )
    if bound:
        pairs = {name.removesuffix(BOUND): name for name in bound}
        add(
            "binding",
            "What binding threads alone does",
            "Each allocator as it comes, normalised to itself with bound threads: above 1 it is slower without. (The paper's figure 6a.)",
            lambda: bars.draw(Summary(summary.results, base), list(pairs), TIME, None, pairs),
        )
    if changed and OURS in names:
        add(
            "ablations",
            f"{OURS} with one mechanism off or changed: time",
            f"Normalised to {OURS} as it comes: above 1, the mechanism pays. (The paper's figures 6b, 7 and 8.)",
            lambda: bars.draw(Summary(summary.results, OURS), [OURS, *changed], TIME, OURS),
        )
        add(
            "ablations-memory",
            f"{OURS} with one mechanism off or changed: peak resident set",
            f"Normalised to {OURS} as it comes.",
            lambda: bars.draw(Summary(summary.results, OURS), [OURS, *changed], MEMORY, OURS),
        )
    return drawn
