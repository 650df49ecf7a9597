#!/bin/sh
# Repeats tests under conditions that a test of the gate must bear: a loaded machine, one CPU, ignored signals and no terminal,
# nothing cached and no network, a second copy beside it, any order. sh scripts/flaky.sh --help
cd "$(dirname -- "$0")/.." || exit 1
[ -x .venv/bin/python ] || { echo "flaky.sh: .venv is missing; sh scripts/test.sh makes it" >&2; exit 2; }
exec .venv/bin/python tests/gate/flaky.py "$@" </dev/null
