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
    files: Annotated[
        list[Path], typer.Argument(help="Results that numalloc bench has written. Several files are merged.", metavar="FILE...")
    ],
    output: Annotated[Path, typer.Option(help="Folder for index.html, results.md and the figures (SVG).", metavar="FOLDER")] = Path(
        "numalloc-bench-report"
    ),
    text: Annotated[
        Optional[Path],
        typer.Option("--markdown", help="File for the tables in Markdown. Default: results.md in that folder.", metavar="FILE"),
    ] = None,
    notes: Annotated[
        Optional[Path],
        typer.Option(
            help="Markdown with the reasons why numalloc is behind in some programs; results.md inserts it after the table of these.",
            metavar="FILE",
        ),
    ] = None,
    baseline: Annotated[Optional[str], typer.Option(help="The allocator to which ratios relate. Default: the first file's.")] = None,
) -> None:
    """Draw the results (time, memory, speedup by threads, ablations) as SVG, as one HTML page and as Markdown."""
    from numalloc_tools.bench.report import figures  # imported here: matplotlib takes longer to load than most commands run

    results = merged([read(path) for path in files])
    check_described(results, files[0])
    baseline = baseline or results.settings["baseline"]
    if baseline not in results.names:
        raise Problem(f"--baseline: '{baseline}' is not in the results; accepted: {', '.join(results.names)}")
    if not results.runs:
        raise Problem(f"{files[0]} contains no runs; accepted: results with at least one measured run")
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
