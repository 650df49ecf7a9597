#!/bin/sh
# run.sh [EXPERIMENT...] [OPTION...]: repeats the papers' experiments on this machine and packs the results.
# Without words: all. Interrupt it when you like: the same command goes on. Send back the archive that it names.
#
# It needs Linux on x86-64 with glibc, python3 with venv, a C compiler, and PyPI once for the tools' packages (or
# PIP_NO_INDEX and PIP_FIND_LINKS). Programs that are not installed are rows that say so: README.txt names packages.
set -eu
cd "$(dirname "$0")"
sha256sum --quiet -c SHA256SUMS
[ -x .venv/bin/numalloc ] || { python3 -m venv .venv && .venv/bin/pip install -q ./tools; }
[ $# -gt 0 ] || set -- all
status=0
.venv/bin/python research paper "$@" --library build/release/libnumalloc.so --output results || status=$?
case " $* " in *" --list "* | *" --dry-run "*) exit $status ;; esac
cp bundle.json results/
archive=results-$(uname -n).tar.gz
tar czf "$archive" results
echo "the results are in $PWD/$archive; research read-bundle $archive reads them"
exit $status
