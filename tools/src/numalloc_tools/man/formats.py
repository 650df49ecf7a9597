"""numalloc(5): the files that people write, or have written for them."""

from numalloc_tools.man.roff import Page, bold, italic

PROFILE = """\
allocator = "numalloc"
threads = "sparse"
memory = "interleave"
huge-pages = "on"

[options]
purge_delay = "-1"
"""


def page() -> Page:
    made = Page("numalloc", 5, "files of numalloc: binding rules, profiles of settings, statistics")
    made.heading("Binding rules")
    made.paragraph("What NUMALLOC_BINDING_FILE names, for NUMALLOC_BINDING=file. One rule a line:")
    made.verbatim("# threads   nodes\n0-3         0\n4-31        1-7")
    made.paragraph(
        "THREADS are numbers and ranges: 0 is main, the others are numbered in order of creation. NODES are the kernel's numbers. "
        "The threads of a rule take its nodes in turn, and the first rule that names a thread counts. Threads without a rule are "
        "interleaved over the nodes. # begins a comment. A line that is not understood is named on standard error with its "
        "number, and none of the file's rules holds."
    )
    made.heading("Profiles of settings")
    made.paragraph(
        "What numalloc-tune(1) writes and numalloc-run(1) takes with --profile, in TOML. A name that is left out keeps its default; "
        "flags of the command line count more than the file."
    )
    made.verbatim(PROFILE)
    for name, what in (
        ("allocator", "numalloc, glibc, another that numalloc-run(1) knows, or the path of a library."),
        ("threads", "default, none, sparse (each next thread on the next node) or dense (a node is filled first)."),
        ("memory", "default, first-touch, local, interleave, preferred:N, bind:LIST or weighted."),
        ("huge-pages", "default, on or off."),
        ("autonuma", "default or off."),
        ("binding-only", "true binds threads and leaves the program's own malloc alone."),
        (
            "[options]",
            "options of the library, libnumalloc(3), without NUMALLOC_ and in small letters; values are texts, whole numbers, true or false.",
        ),
    ):
        made.item(bold(name), what)
    made.heading("Statistics")
    made.paragraph(
        "What NUMALLOC_STATISTICS=FILE.json appends: a line of JSON for each process, with the objects process, options and nodes, and "
        "in each node its classes. libnumalloc(3) says what each name counts."
    )
    made.item(italic("/dev/shm/numalloc-USER-PROCESS"), "With NUMALLOC_STATISTICS_PAGE=1: what numalloc-stat(1) and numalloc-top(1) read.")
    made.heading("See also")
    made.paragraph("numalloc(1), libnumalloc(3)")
    return made
