"""The number of runs that the budget still allows."""

from dataclasses import dataclass

RUNS = 100  # the default maximum


@dataclass
class Budget:
    """Runs, seconds, or both: the first limit that is reached counts. Seconds are those of the runs, so that a resumed
    search decides as an uninterrupted one."""

    runs: int | None = None
    seconds: float | None = None
    done: int = 0
    spent: float = 0.0

    def count(self, seconds: float) -> None:
        self.done += 1
        self.spent += seconds

    def left(self) -> int:
        """In runs, each estimated to take as long as those before it."""
        by_number = self.runs - self.done if self.runs is not None else 10**9
        if self.seconds is None or not self.spent:
            return max(by_number, 0)
        return max(min(by_number, int((self.seconds - self.spent) * self.done / self.spent)), 0)
