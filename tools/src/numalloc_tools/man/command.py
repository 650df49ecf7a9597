"""`numalloc man`: shows a manual page, or writes all of them."""

import shutil
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Annotated, Optional

import typer

from numalloc_tools import __version__
from numalloc_tools.man import commands, formats, library
from numalloc_tools.man.roff import Page
from numalloc_tools.problem import Problem

# Symbolic links into the project, or the copies of a package.
HEADERS = Path(__file__).parents[1] / "tables"


def register(app: typer.Typer) -> None:
    def man(
        page: Annotated[
            str, typer.Argument(help="The page: numalloc, one of its commands (run, tune, lab-run), libnumalloc, or numalloc.5.")
        ] = "numalloc",
        output: Annotated[
            Optional[Path], typer.Option(help="Write all pages to this folder instead, in man1, man3 and man5.", metavar="FOLDER")
        ] = None,
    ) -> None:
        """Show a manual page, or write all of them to a folder.

        Without man(1) or a terminal, prints the page's source, for man -l.
        """
        pages = all_pages(app)
        if output is not None:
            write(pages, output)
            print(f"{len(pages)} manual pages are in {output}")
            return
        show(_named(page, pages))

    app.command("man")(man)


def all_pages(app: typer.Typer) -> list[Page]:
    return [*commands.pages(typer.main.get_command(app)), library.page(HEADERS), formats.page()]


def write(pages: list[Page], folder: Path) -> None:
    for page in pages:
        place = folder / f"man{page.section}"
        try:
            place.mkdir(parents=True, exist_ok=True)
            (place / page.file).write_text(page.text(__version__, f"{date.today():%Y-%m-%d}"))
        except OSError as error:
            raise Problem(f"--output: {place} cannot be written ({error.strerror}); accepted: a writable folder") from None


def _named(name: str, pages: list[Page]) -> Page:
    for page in pages:
        if name in (page.file, page.name, page.name.removeprefix("numalloc-")):
            return page
    accepted = ", ".join(dict.fromkeys(page.name.removeprefix("numalloc-") for page in pages))
    raise Problem(f"man: there is no page '{name}'; accepted: {accepted}, numalloc.5")


def show(page: Page) -> None:
    text = page.text(__version__, f"{date.today():%Y-%m-%d}")
    viewer = shutil.which("man")
    if not viewer or not sys.stdout.isatty():
        sys.stdout.write(text)
        return
    with tempfile.TemporaryDirectory(prefix="numalloc-man-") as folder:
        path = Path(folder, page.file)
        path.write_text(text)
        subprocess.run([viewer, "-l", str(path)])
