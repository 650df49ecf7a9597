#!/bin/sh
# git: clone, log, blame, gc and fsck of a repository with history.
. "$(dirname "$0")/common.sh"
need git
cd "$folder" || exit 1
export HOME="$folder" GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main source
cd source || exit 1
i=0
while [ $i -lt 30 ]; do
    k=0
    while [ $k -lt 20 ]; do
        seq $((i * k)) $((i * k + 400)) > "file$k"
        k=$((k + 1))
    done
    git add . && git commit -qm "change $i" || fail "setting up"
    i=$((i + 1))
done
cd .. || exit 1
watched git clone -q --no-local --no-hardlinks source copy 2> errors || { cat errors; fail "clone"; }
silent errors
require_processes 3
[ "$(git -C source rev-parse HEAD)" = "$(git -C copy rev-parse HEAD)" ] || fail "other head"
diff -r -x .git source copy || fail "other files"
preloaded git -C copy gc -q --aggressive 2> errors || { cat errors; fail "gc"; }
preloaded git -C copy fsck --full --strict > checked 2>&1 || { cat checked; fail "fsck"; }
for command in "log --stat" "log -p" "blame file3" "diff HEAD~20 HEAD"; do
    # shellcheck disable=SC2086
    preloaded git -C copy $command > got 2>&1 && git -C source $command > expected && cmp got expected || fail "git $command"
done
echo "git: cloned, packed, checked"
