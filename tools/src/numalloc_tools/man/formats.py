"""numalloc(5): files for and from the commands and the library."""

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
    made.paragraph("The file of NUMALLOC_BINDING_FILE, for NUMALLOC_BINDING=file. One rule per line:")
    made.verbatim("# threads   nodes\n0-3         0\n4-31        1-7")
    made.paragraph(
        "THREADS are numbers and ranges: 0 is main, the others are numbered in order of creation. NODES are the kernel's "
        "numbers. A rule assigns its threads to its nodes round-robin. If several rules name a thread, the first one "
        "applies. Threads without a rule are interleaved over the nodes. # begins a comment. The library reports a wrong "
        "line on standard error with its number, and ignores that line."
    )
    made.heading("Profiles of settings")
    made.paragraph(
        "A TOML file that numalloc-tune(1) writes and numalloc-run(1) reads with --profile. A missing name has its default; "
        "flags on the command line override the file."
    )
    made.verbatim(PROFILE)
    for name, what in (
        ("allocator", "numalloc, glibc, another that numalloc-run(1) knows, or the path of a library."),
        (
            "threads",
            "default (auto), none, sparse (each new thread on the next node) or dense (a node's CPUs first, then the next node's).",
        ),
        ("memory", "default, first-touch, local, interleave, preferred:N, bind:LIST or weighted."),
        ("huge-pages", "default, on or off."),
        ("autonuma", "default or off."),
        ("binding-only", "true binds threads and keeps the program's own malloc."),
        (
            "[options]",
            "options of the library, libnumalloc(3), without NUMALLOC_ and in lower case; values are strings, integers, true or false.",
        ),
    ):
        made.item(bold(name), what)
    made.heading("Statistics")
    made.paragraph(
        "NUMALLOC_STATISTICS=FILE.json appends a line of JSON for each process, with the objects process, options and nodes, "
        "and the classes in each node. libnumalloc(3) describes each name."
    )
    made.item(
        italic("/dev/shm/numalloc-UID-PID"),
        "The statistics of a process with NUMALLOC_STATISTICS_PAGE=1; numalloc-stat(1) and numalloc-top(1) read this file.",
    )
    made.heading("See also")
    made.paragraph("numalloc(1), libnumalloc(3)")
    return made
