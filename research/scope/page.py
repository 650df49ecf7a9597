"""Results as one page of HTML: figures, tables, what is hottest, and the machine."""

import shlex
from collections.abc import Iterable

from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from numalloc_tools import html_page
from numalloc_tools.html_page import escaped
from numalloc_tools.style import as_svg

from research.scope import drawing, tables
from research.scope.model import WAIT
from research.scope.results import Results, Run

_WARNING = """<p class="warning">Counted in an emulator; every time on this page is <b>modelled</b>. A small share of remote lines
  proves nothing alone: read it with the total, the balance over nodes and the time.</p>"""
_MOST = 25  # rows of a table of symbols or lines
_MODEL = (
    "Each CPU and each thread takes its instructions times cycles an instruction, and every miss the latency of where it "
    f"ended, divided by how many are under way at once; a node's memory and a link at 90 % load answer later by {WAIT * 9:.0f} "
    "latency. The longest is the run's time."
)


def page(results: Results, baseline: str) -> str:
    runs = results.most_threads
    summary, other, allocator, parts = (
        (heading, "", _table(columns, map(row_of, results.good))) for heading, columns, row_of in tables.TABLES
    )
    sections = [
        ("summary", summary[0], tables.LEGEND, summary[2]),
        ("time", "Modelled time of the longest CPU or thread", f"{_MODEL} {_order(results)}", _svg(drawing.bars(runs))),
        (
            "memory",
            "Lines of memory, by node of the CPU and of the memory",
            "The diagonal is local. Even over the columns is balanced.",
            _svg(drawing.heat(runs, "matrix")),
        ),
        (
            "caches",
            "Lines of other caches, by node of the CPU and of the giver",
            "What threads share, by intent or not.",
            _svg(drawing.heat(runs, "transfer_matrix")),
        ),
    ]
    if (curves := drawing.speedup(results, baseline)) is not None:
        sections.insert(2, ("speedup", "Modelled speedup by threads", "Higher is better.", _svg(curves)))
    sections += [("parts", *parts), ("else", *other), ("allocator", *allocator)]
    sections.append(("causes", "Why lines were fetched", "Of all that the second-level caches did not have.", _causes(runs)))
    for run in runs:
        sections += _hottest(run)
    if failed := [run for run in results.runs if run.reason]:
        sections.append(("failures", "What did not complete", "", _table(("run", "reason"), ((run.name, run.reason) for run in failed))))
    sections.append(("machine", "The machine", results.hardware.title, _machine(results)))
    return html_page.page(
        "scope",
        "scope",
        f"{shlex.join(results.command)}, on the model of {results.hardware.title}",
        _WARNING,
        (one[:2] for one in sections),
        (html_page.section(*one) for one in sections),
    )


def _order(results: Results) -> str:
    if len(results.most_threads) < 2:
        return ""
    holds = "holds" if results.order_holds() else "does not hold"
    return f"The order of the allocators {holds} when latencies are halved and doubled."


def _causes(runs: list[Run]) -> str:
    names = {
        "cold": "first use",
        "capacity": "no room",
        "true_sharing": "shared",
        "false_sharing": "shared by chance",
        "upgrade": "asked for writing",
    }
    return _table(("", *names.values()), ([run.name, *(tables.number(run.scope.cause(name)) for name in names)] for run in runs))


def _hottest(run: Run) -> list[tuple[str, str, str, str]]:
    found = []
    mark = "".join(letter if letter.isalnum() else "-" for letter in run.name)
    if symbols := [one for one in tables.hottest_symbols(run) if one[2] + one[3]][:_MOST]:
        rows = ((symbol, object_, tables.number(fills), tables.number(transfers)) for object_, symbol, fills, transfers in symbols)
        body = _table(("symbol", "object", "lines of other nodes' memory", "of their caches"), rows)
        found.append((f"symbols-{mark}", f"{run.name}: whose code fetches from other nodes", "", body))
    if stacks := run.raw.get("stacks", [])[:_MOST]:
        lines = ((" < ".join(one["frames"]), tables.number(one["fills"]), tables.number(one["transfers"])) for one in stacks)
        body = _table(("stack, the innermost first", "lines of other nodes' memory", "of their caches"), lines, "text")
        found.append((f"stacks-{mark}", f"{run.name}: stacks that fetch from other nodes (sampled)", "", body))
    if shared := run.raw["false_sharing"][:_MOST]:
        body = _table(("first address", "what it is", "second", "what it is", "nodes", "times"), map(tables.sharing_of, shared))
        found.append((f"sharing-{mark}", f"{run.name}: two addresses, one line", "", body))
    return found


def _machine(results: Results) -> str:
    hardware = results.hardware
    facts = {**hardware.as_json(), **{f"source of {name}": text for name, text in hardware.sources.items()}}
    facts |= {f"assumed: {name}": text for name, text in hardware.assumed.items()} | results.settings
    return f"<details><summary>All of it</summary>{_table(('', ''), facts.items(), 'text')}</details>"


def _svg(figure: Figure) -> str:
    drawn = as_svg(figure)
    plt.close(figure)
    return f'<div class="figure">{drawn}</div>'


def _table(headings: Iterable[str], rows: Iterable[Iterable], kind: str = "") -> str:
    head = "".join(f"<th>{escaped(one)}</th>" for one in headings)
    body = "".join("<tr>" + "".join(f"<{tag}>{escaped(one)}</{tag}>" for tag, one in _tagged(row)) + "</tr>" for row in rows)
    return f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _tagged(row: Iterable) -> Iterable[tuple[str, object]]:
    return (("td" if place else "th", one) for place, one in enumerate(row))
