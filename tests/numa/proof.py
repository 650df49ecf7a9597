"""Zero remote pages: the smallest choice of scenarios, and when a cell has passed."""

from numalloc_tools.guest.scenarios import THREADS_ARE, Cell, generations, listing1

SOME_BYTES = 8 << 20  # that each thread has at a time
SMOKE = listing1(["64K", "64"], ["left", "other"], list(THREADS_ARE), 1, SOME_BYTES // 4) + generations(list(THREADS_ARE))


def check(cell: Cell, nodes: int, findings: list[str]) -> None:
    assert not cell.failure, f"{cell.failure}; the machine said: {findings}"
    assert cell.remote == 0, f"{cell.remote} of {cell.pages} pages are remote; spread {cell.spread}"
    assert cell.passed(nodes), f"the fullest node has {100 * cell.fullest_share():.0f} % of the pages: {cell.spread}"
