"""How many runs there is still room for."""

from dataclasses import dataclass

RUNS = 100  # at most, if nothing else is said


@dataclass
class Budget:
    """Runs, seconds, or both: what ends first counts. Seconds are those of the runs, so that a search that goes on
    after an interruption decides as it would have."""

    runs: int | None = None
    seconds: float | None = None
    done: int = 0
    spent: float = 0.0

    def count(self, seconds: float) -> None:
        self.done += 1
        self.spent += seconds

    def left(self) -> int:
        """In runs, each taken to be as long as those before it."""
        by_number = self.runs - self.done if self.runs is not None else 10**9
        if self.seconds is None or not self.spent:
            return max(by_number, 0)
        return max(min(by_number, int((self.seconds - self.spent) * self.done / self.spent)), 0)
