"""Files of any content for readers, made by Hypothesis: any bytes, and files of ours in which one value is another, is gone,
or is there twice."""

import copy
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numalloc_tools.problem import Problem

# The gate makes the same files in each run, --full others: conftest.py at the root has the profiles.
few = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
_ANY_BYTES = st.one_of(st.binary(max_size=64), st.text(alphabet='[]{}",:=.0123456789abc \n', max_size=64).map(str.encode))
_TRIED_ALWAYS = (b"", b"[" * 100_000, b"a = " + b"[" * 100_000, b'{"a": ' * 50_000, b"9" * 5000, b"\x1f\x8b", b"\xff\xfe")


def any_bytes(test: Callable) -> Callable:
    """Gives the test any `content`."""
    for content in _TRIED_ALWAYS:
        test = example(content=content)(test)
    return few(given(content=_ANY_BYTES)(test))


def check(read: Callable[[Path], object], folder: Path, content: bytes) -> None:
    """The file is read, or one line says what is wrong with it and what is accepted."""
    path = folder / "file"
    path.write_bytes(content)
    try:
        read(path)
    except Problem as problem:
        said = str(problem)
        assert said and "\n" not in said, said
        assert str(folder) in said or "accepted: " in said, said


def a_place(draw, found):
    """Any value in it: the object or list that has it, and the name or number there."""
    places = []

    def walk(one) -> None:
        for key, value in list(one.items() if isinstance(one, dict) else enumerate(one)):
            places.append((one, key))
            if isinstance(value, dict | list):
                walk(value)

    walk(found)
    return draw(st.sampled_from(places))


def values(with_null: bool):
    alone = [st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=8)]
    if with_null:
        alone.append(st.none())
    one = st.one_of(alone)
    return st.one_of(
        one,
        st.lists(one, max_size=3),
        st.dictionaries(st.text(max_size=5), one, max_size=2),
        st.lists(st.lists(one, max_size=2), max_size=2),
    )


@st.composite
def changed(draw, original, with_null=True):
    """Once or twice something else than we would write."""
    found = copy.deepcopy(original)
    for _ in range(draw(st.integers(1, 2))):
        if not found:
            break
        holder, key = a_place(draw, found)
        if draw(st.integers(0, 3)) == 0:
            del holder[key]
        elif isinstance(holder, dict) and draw(st.integers(0, 3)) == 0:
            holder[draw(st.text(max_size=8))] = draw(values(with_null))
        else:
            holder[key] = draw(values(with_null))
    return found
