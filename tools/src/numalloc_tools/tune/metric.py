"""A number that the program prints."""

import math
import re

from numalloc_tools.problem import Problem

_SUCH = "such as 'rate: ([0-9.]+)'"


class NoMetric(Exception):
    """The program printed no number; the text quotes its output."""


class Metric:
    def __init__(self, text: str):
        try:
            self._pattern = re.compile(text, re.MULTILINE)
        except re.error as error:
            raise Problem(f"--metric: '{text}' is not a regular expression ({error}); accepted: one {_SUCH}") from None
        if self._pattern.groups != 1:
            raise Problem(f"--metric: '{text}' has {self._pattern.groups} groups; accepted: one, around the number, {_SUCH}")
        self.text = text

    def read(self, output: str) -> float:
        """The last match counts: programs print intermediate results first."""
        found = self._pattern.findall(output)
        if not found:
            last = (output.strip().splitlines() or ["nothing"])[-1][:200]
            raise NoMetric(f"'{self.text}' does not match what the program prints; it last said: {last}")
        try:
            value = float(found[-1].replace(",", ""))
        except ValueError:
            raise NoMetric(f"'{self.text}' found '{found[-1]}', which is not a number") from None
        if not math.isfinite(value):
            raise NoMetric(f"'{self.text}' found {found[-1]}, which cannot be compared")
        return value
