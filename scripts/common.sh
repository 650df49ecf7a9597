# Sourced by the scripts beside it: finds the project's folder and installs what is missing.
set -u
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
cd "$root" || exit 1

BUILD_PACKAGES="cmake g++ ninja-build python3 python3-venv"
DEMO_PACKAGES="redis-server redis-tools sqlite3"
TEST_PACKAGES="abigail-tools qemu-system-x86 qemu-system-arm busybox-static cpio numactl util-linux gcc libc6-dev pkg-config binutils systemtap-sdt-dev bpftrace libcap2-bin libseccomp2 musl-tools openmpi-bin postgresql rpm python3-click python3-pyelftools python3-rich python3-shellingham python3-tomli-w"

say() { printf '%s\n' "$*"; }
fail() { printf '%s: %s\n' "$(basename -- "$0")" "$*" >&2; exit 1; }

# What the tests of programs need beside these: one package a line in their own list. The one name that says
# a version of Python is put to this machine's.
test_packages() {
    python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo 3.11)
    sed -e 's/#.*//' -e "s/^libpython3\.[0-9]*-/libpython$python-/" tests/programs/PACKAGES
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "needs root or sudo to install packages; run as root: $*"
    fi
}

# install_packages NAME...: those of them that are not there yet, and nothing if all are.
install_packages() {
    command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
        fail "installs packages with apt-get, which is not here; accepted: Debian 12, Ubuntu 22.04 or later"
    missing=
    for package; do installed "$package" || missing="$missing $package"; done
    [ -n "$missing" ] || { say "all packages are installed"; return 0; }
    say "installing$missing"
    as_root apt-get update -q || return 1
    # shellcheck disable=SC2086  # a list of words
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
}

# The tools in .venv, with what $1 names in brackets (such as [test]).
make_venv() {
    [ -x .venv/bin/python ] || python3 -m venv .venv || return 1
    .venv/bin/python -m pip install -q --disable-pip-version-check -e "tools$1"
}

# build PRESET [-D NAME=VALUE...]
build() {
    preset=$1
    shift
    cmake --preset "$preset" "$@" && cmake --build --preset "$preset"
}
