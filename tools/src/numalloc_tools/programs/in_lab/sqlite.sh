measured "$SQLITE_THREADS" "$THREADS" "$AMOUNT" database >said
status=0
ended >ended || fail "$(cat said)"
grep -q '^rows [0-9]* good$' said || fail "$(cat said)"
cat ended
