"""text.py FILES MEGABYTES SEED: files of made-up words in the folder where it is called, the same for the same seed."""

import random
import sys

_WORDS, _PARAGRAPH = 5000, 20_000


def main() -> None:
    files, megabytes, seed = map(int, sys.argv[1:])
    numbers = random.Random(seed)
    words = ["".join(numbers.choices("etaoinshrdlu", k=numbers.randint(2, 9))) for _ in range(_WORDS)]
    for number in range(files):
        paragraph = ("\n".join(" ".join(numbers.choices(words, k=12)) for _ in range(_PARAGRAPH // 12)) + f"\nneedle {number}\n").encode()
        left = megabytes << 20
        with open(f"text{number}", "wb") as file:
            while left > 0:
                left -= file.write(paragraph[:left] if left < len(paragraph) else paragraph)


main()
