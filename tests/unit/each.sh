#!/bin/sh
# each.sh PROGRAM: runs each test of a GoogleTest program in a process of its own, as ctest does where it can
# ask the program for them, and prints what failed.
tests=$("$1" --gtest_list_tests) || exit 1
failed=0
suite=
for word in $(printf '%s\n' "$tests" | sed -e '/^Running main/d' -e 's/#.*//'); do
    case $word in
        *.) suite=$word; continue ;;
    esac
    said=$("$1" --gtest_filter="$suite$word" 2>&1) && continue
    status=$?
    failed=$((failed + 1))
    printf '%s\n%s%s: status %s\n' "$said" "$suite" "$word" "$status"
done
[ $failed = 0 ] || { echo "$failed tests failed"; exit 1; }
