"""Reads results, draws them, writes the page."""

import os
from pathlib import Path
from typing import Annotated, Optional

import typer

from numalloc_tools.bench.report.markdown import markdown
from numalloc_tools.bench.report.page import page
from numalloc_tools.bench.results import Summary, check_described, merged, read
from numalloc_tools.checks import require_folder, text_of
from numalloc_tools.problem import Problem


def register(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    files: Annotated[list[Path], typer.Argument(help="What numalloc bench has written; several are read as one.", metavar="FILE...")],
    output: Annotated[Path, typer.Option(help="Folder for index.html, results.md and the figures as SVG.", metavar="FOLDER")] = Path(
        "numalloc-bench-report"
    ),
    text: Annotated[
        Optional[Path], typer.Option("--markdown", help="The text with tables; else results.md in that folder.", metavar="FILE")
    ] = None,
    notes: Annotated[
        Optional[Path],
        typer.Option(help="Markdown that results.md repeats behind the programs in which numalloc is behind: why it is.", metavar="FILE"),
    ] = None,
    baseline: Annotated[Optional[str], typer.Option(help="The allocator that ratios are to; else the first file's.")] = None,
) -> None:
    """Draw the results: time, memory, speedup by threads, ablations; as SVG, as one page of HTML, and as Markdown."""
    from numalloc_tools.bench.report import figures  # here: matplotlib takes longer to load than most commands run

    results = merged([read(path) for path in files])
    check_described(results, files[0])
    baseline = baseline or results.settings["baseline"]
    if baseline not in results.names:
        raise Problem(f"--baseline: '{baseline}' is not in the results; accepted: {', '.join(results.names)}")
    if not results.runs:
        raise Problem(f"{files[0]} holds no runs; accepted: results of a run that has measured something")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Problem(f"--output: {output} cannot be made ({error.strerror}); accepted: a folder") from None
    text = text or output / "results.md"
    require_folder(text, "--markdown")
    remarks = text_of(notes, "--notes")
    summary = Summary(results, baseline)
    drawn = figures.draw_all(summary, output)
    (output / "index.html").write_text(page(summary, drawn))
    way = os.path.relpath(output, text.parent)
    text.write_text(markdown(summary, drawn, "" if way == "." else f"{way}/", remarks))
    typer.echo(f"{output}/index.html, {text} and {len(drawn)} figures are written")
