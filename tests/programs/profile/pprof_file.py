"""A heap profile's file, read by the wire format alone: nothing that wrote it is used."""

import bisect
import re
import subprocess
from collections import defaultdict


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            length, at = varint(data, at)
            assert at + length <= len(data), "a field is longer than its message"
            value, at = data[at : at + length], at + length
        else:
            raise AssertionError(f"wire type {key & 7}")
        yield key >> 3, value


def numbers(data):
    at, found = 0, []
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


class Profile:
    def __init__(self, path):
        self.strings, self.samples, self.mappings, self.locations, self.types, self.comments = [], [], {}, {}, [], []
        self.period = 0
        for number, value in fields(open(path, "rb").read()):
            if number == 1:
                self.types.append(dict(fields(value)))
            elif number == 2:
                self.samples.append(self._sample(value))
            elif number == 3:
                mapping = dict(fields(value))
                self.mappings[mapping[1]] = mapping
            elif number == 4:
                location = dict(fields(value))
                assert location[1] not in self.locations, "a location's number comes twice"
                self.locations[location[1]] = location
            elif number == 6:
                self.strings.append(value.decode())
            elif number == 12:
                self.period = value
            elif number == 13:
                self.comments.append(value)
        assert self.strings[0] == "", self.strings[:1]
        self.types = [self.strings[kind[1]] for kind in self.types]
        self.comments = [self.strings[number] for number in self.comments]
        for sample in self.samples:
            assert len(sample["values"]) == len(self.types)
            assert all(number in self.locations for number in sample["locations"])
            sample["labels"] = {self.strings[key]: self.strings[text] for key, text in sample["labels"]}

    @staticmethod
    def _sample(data):
        sample = {"locations": [], "values": [], "labels": []}
        for number, value in fields(data):
            if number == 1:
                sample["locations"] = numbers(value)
            elif number == 2:
                sample["values"] = numbers(value)
            elif number == 3:
                label = dict(fields(value))
                sample["labels"].append((label[1], label[2]))
        return sample

    def functions_of(self, program):
        """For each number of a location in the program, its function."""
        symbols = []
        for line in subprocess.run(["nm", "--defined-only", program], capture_output=True, text=True, check=True).stdout.splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in "tTwW":
                symbols.append((int(words[0], 16), words[2]))
        symbols.sort()
        segments = []
        for line in subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout.splitlines():
            if found := re.match(r"\s*LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", line):
                segments.append(tuple(int(word, 16) for word in found.groups()))
        names = {}
        for number, location in self.locations.items():
            mapping = self.mappings.get(location.get(2, 0))
            if mapping is None or self.strings[mapping[5]] != program:
                continue
            offset = location[3] - mapping[2] + mapping.get(4, 0)
            for start, address, length in segments:
                if start <= offset < start + length:
                    place = bisect.bisect_right(symbols, (offset - start + address, "~")) - 1
                    names[number] = symbols[place][1]
        return names

    def amounts_by_function(self, program):
        """{function: {type: amount, "records": how many sums}} of what the program's innermost function on each stack asked for."""
        names = self.functions_of(program)
        amounts = defaultdict(lambda: defaultdict(int))
        for sample in self.samples:
            own = next((names[number] for number in sample["locations"] if number in names), "?")
            for kind, value in zip(self.types, sample["values"]):
                amounts[own][kind] += value
        return amounts
