"""pbzip2: a reader, compressing threads and a writer pass blocks of a megabyte to each other."""

import random
import tempfile
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.launch.launcher import Ended
from numalloc_tools.programs import Work
from numalloc_tools.programs.real.command import measured

NAME, FAMILY, THREADS, QUICK = "pbzip2", "pipelines", (1, 2, 4, 8), True
DESCRIPTION = "compresses generated text with this number of threads; the file must equal that without the allocator"
NEEDS = {"pbzip2": "pbzip2"}
_MEGABYTES = 16
_WORDS = 5000


def run(allocator: Allocator, work: Work) -> Ended:
    with tempfile.TemporaryDirectory(prefix="numalloc-bench-") as folder:
        _write_text(Path(folder, "text"), max(1, round(_MEGABYTES * work.scale)) << 20, work.seed)
        words = ["pbzip2", "-q", "-k", "-p" + str(work.threads), "-b3", "text"]
        return measured(words, allocator, work, Path(folder), "text.bz2")


def _write_text(path: Path, size: int, seed: int) -> None:
    numbers = random.Random(seed)
    words = ["".join(numbers.choices("etaoinshrdlu", k=numbers.randint(2, 9))) for _ in range(_WORDS)]
    paragraph = " ".join(numbers.choices(words, k=200_000)).encode()
    with open(path, "wb") as file:
        for start in range(0, size, len(paragraph)):
            file.write(paragraph[: size - start])
