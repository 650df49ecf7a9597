"""Papers.md, papers.json and the pictures, from whatever has been run."""

import json
from collections.abc import Callable
from pathlib import Path

from numalloc_tools.bench.results import Results

from research.paper import draw, runs, view
from research.paper.runs import How
from research.paper.table import Call, Experiment
from research.paper.view import Shown


def write(
    chosen: list[Experiment],
    calls: dict[str, Call],
    how: How,
    facts: dict,
    troubles: dict[str, str],
    done: Callable[[Call, How], bool] = runs.done,
) -> None:
    """`facts`: of the machine that has measured."""
    nodes = facts["nodes"]
    text = ["# The papers' figures and tables, repeated", _where(how, facts)]
    kept = []
    for one in chosen:
        text += [f"## {one.id}: {one.title}", f"Of {one.source}. The paper: {one.said}"]
        if one.paper:
            text.append(_table(["the paper's figures", ""], [[name, f"{value:g}"] for name, value in one.paper.items()]))
        if nodes == 1:
            text.append(f"**On this machine of one node:** {one.one_node}")
        text += [f"`{name}` has no results: {troubles[name]}" for name in one.runs if name in troubles]
        there = [calls[name] for name in one.runs if done(calls[name], how)]
        missing = [name for name in one.runs if calls[name] not in there and name not in troubles]
        text += [f"Not run yet: {', '.join(missing)}"] if missing else []
        tables: list[Shown] = []
        if one.view == "document":
            text += [f"In [{how.document(call).name}]({how.document(call).name})." for call in there]
        elif there:
            parts = [part for call in there if (part := runs.results(call, how))]
            tables = view.shown(one, parts)
            text += _shown(one, tables, parts, how.output)
        kept.append(
            {
                "id": one.id,
                "title": one.title,
                "source": one.source,
                "paper": one.paper,
                "said": one.said,
                "one_node": one.one_node,
                "nodes": nodes,
                "runs": list(one.runs),
                "done": [call.name for call in there],
                "troubles": [troubles[name] for name in one.runs if name in troubles],
                "tables": [{"heading": each.heading, "columns": each.columns, "rows": each.rows} for each in tables],
            }
        )
    (how.output / "papers.md").write_text("\n\n".join(text) + "\n")
    (how.output / "papers.json").write_text(
        json.dumps({"machine": facts, "scale": how.scale, "paper": how.paper, "experiments": kept}, indent=1) + "\n"
    )


def _where(how: How, facts: dict) -> str:
    nodes = facts["nodes"]
    ours = next(
        (one for path in sorted((how.output / "runs").glob("*.json")) for one in runs.read(path).allocators if one["name"] == "numalloc"),
        {},
    )
    commit = ours.get("version") or "an unknown commit"
    return (
        f"{facts['processor']}, {facts['cpus']} CPUs, {nodes} memory node{'s' if nodes > 1 else ''}, Linux {facts['kernel']}, "
        f"{facts['system']}. numalloc of {commit}. Scale {how.scale or 'of each program'}"
        f"{', the papers’ sizes where programs know them' if how.paper else ''}."
    )


def _shown(one: Experiment, tables: list[Shown], parts: list[Results], output: Path) -> list[str]:
    text = []
    for number, each in enumerate(tables):
        if not each.rows:
            text.append("No program has given a figure.")
            continue
        picture = f"{one.id}{f'-{number + 1}' if number else ''}.svg"
        draw.write(each, f"{one.id}: {one.title}", output / picture)
        rows = [[row, *(f"{values[name]:.3g}" if name in values else "-" for name in each.columns)] for row, values in each.rows.items()]
        text += [f"{each.heading}:", _table(["", *each.columns], rows), f"![{one.title}]({picture})"]
        text += [f"A dash: {reason}" for reason in each.why]
    undone = list(dict.fromkeys(note.partition(": ")[2] for part in parts for note in part.settings.get("left_undone", [])))
    return text + [f"Left undone by levers: {note}" for note in undone]


def _table(headings: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, ["---"] * len(headings), *rows))
