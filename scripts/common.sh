# Sourced by the scripts beside it: finds the project's folder and installs what is missing.
set -u
umask 022 # tests run programs, and the tools in .venv, as another user
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
cd "$root" || exit 1

BUILD_PACKAGES="cmake g++ ninja-build python3 python3-venv"
DEMO_PACKAGES="redis-server redis-tools sqlite3 qemu-system-x86 busybox-static cpio"
TEST_PACKAGES="abigail-tools qemu-system-arm numactl util-linux gcc libc6-dev pkg-config binutils systemtap-sdt-dev bpftrace libcap2-bin libseccomp2 musl-tools openmpi-bin rpm python3-click python3-pyelftools python3-rich python3-shellingham python3-tomli-w zstd groff-base"

say() { printf '%s\n' "$*"; }
fail() { printf '%s: %s\n' "$(basename -- "$0")" "$*" >&2; exit 1; }

# What the tests of programs need beside these: one package a line in their own list, or its names in several releases
# with | between them. The one name that says a version of Python is put to this machine's.
test_packages() {
    python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo 3.11)
    sed -e 's/#.*//' -e "s/^libpython3\.[0-9]*-/libpython$python-/" tests/programs/PACKAGES
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
any_installed() { for name in $(echo "$1" | tr '|' ' '); do installed "$name" && return 0; done; return 1; }
# The first of a package's names that this release has; the first of all if it has none, so that apt names it.
name_here() {
    for name in $(echo "$1" | tr '|' ' '); do
        LC_ALL=C apt-cache policy "$name" 2>/dev/null | grep -q '^  Candidate: [^(]' && { echo "$name"; return; }
    done
    echo "${1%%|*}"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "needs root or sudo to install packages; run as root: $*"
    fi
}

# For a command that fetches: half an hour at most.
LIMITED="timeout --foreground 1800"

# tried COMMAND...: three times at most, for what the network may fail.
tried() {
    for pause in 10 30 ''; do
        "$@" && return 0
        [ -n "$pause" ] || return 1
        say "failed: $*; trying again in $pause s"
        sleep "$pause"
    done
}

# quietly NAME COMMAND...: its output goes to build/NAME.log; a line at least every ten seconds says how it goes. In the
# foreground, where Ctrl-C reaches apt and pip; the script ends once they have.
quietly() {
    log=build/$1.log
    shift
    (
        seconds=0
        while sleep 1 && kill -0 $$ 2>/dev/null; do
            seconds=$((seconds + 1))
            [ $((seconds % 9)) = 0 ] || continue
            line=$(tail -n 1 "$log")
            say "$(printf '%6d s  %.90s' $seconds "${line:-$1}")"
        done
    ) &
    heart=$!
    trap 'kill $heart 2>/dev/null; exit 130' INT TERM HUP
    (trap 'exit 130' INT TERM HUP; "$@") >"$log" 2>&1 </dev/null
    status=$?
    trap - INT TERM HUP
    kill $heart 2>/dev/null
    [ $status = 0 ] || tail -n 20 "$log"
    return $status
}

# install_packages NAME...: those of them that are not there yet, and nothing if all are.
install_packages() {
    command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
        fail "installs packages with apt-get, which is not here; accepted: Debian 12 or later, Ubuntu 24.04 or later"
    missing=
    for package; do any_installed "$package" || missing="$missing $package"; done
    [ -n "$missing" ] || { say "all packages are installed"; return 0; }
    say "installing$missing"
    # shellcheck disable=SC2086  # lists of words
    tried as_root $LIMITED apt-get -o DPkg::Lock::Timeout=600 update -q || return 1
    missing=$(for package in $missing; do name_here "$package"; done)
    # shellcheck disable=SC2086  # lists of words
    tried as_root $LIMITED env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -q --no-install-recommends $missing
}

# The tools in .venv, with what $1 names in brackets (such as [test]). Nothing is fetched where all of it is there already.
make_venv() {
    .venv/bin/python -m pip --version >/dev/null 2>&1 || python3 -m venv --clear .venv || return 1
    mkdir -p build || return 1
    # Where the same text is in .venv/numalloc-installed[test], the same packages are there.
    { cat tools/pyproject.toml; echo "$root"; } >build/wanted || return 1
    for extra in "$1" "${1:-[test]}"; do
        cmp -s build/wanted ".venv/numalloc-installed$extra" && return 0
    done
    # shellcheck disable=SC2086  # a list of words
    tried $LIMITED .venv/bin/python -m pip install -q --disable-pip-version-check -e "tools$1" || return 1
    cp build/wanted ".venv/numalloc-installed$1"
}
