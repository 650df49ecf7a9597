"""The programs of the lab: built once for each text."""

import pytest
from numalloc_tools.guest import programs
from numalloc_tools.problem import Problem


def test_a_header_elsewhere_is_part_of_the_text(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "one").mkdir()
    (tmp_path / "one/says.c").write_text('#include "../answer.h"\nint main(void) { return ANSWER; }\n')
    (tmp_path / "answer.h").write_text("#define ANSWER 4\n")
    first = programs.built("says", tmp_path / "one")
    assert programs.built("says", tmp_path / "one") == first
    (tmp_path / "answer.h").write_text("#define ANSWER 5\n")
    assert programs.built("says", tmp_path / "one") != first
    (tmp_path / "answer.h").unlink()
    with pytest.raises(Problem, match="says.c cannot be compiled: .*answer.h"):
        programs.built("says", tmp_path / "one")
