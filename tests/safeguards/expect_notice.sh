#!/usr/bin/env bash
# Passes if the test program notices that TEST_WITHOUT is missing: a failed test, an internal check, a crash, or a test
# that hangs (the program ends itself then). Prints what noticed it.
set -u
output=$("$1" --gtest_fail_fast --gtest_brief=1 2>&1)
code=$?
if ((code == 0)); then
  echo "no test notices that $TEST_WITHOUT is missing"
  exit 1
fi
grep -m 3 -E '^\[  FAILED  \]|check failed|Failure|hangs' <<< "$output" || echo "ended by code $code: $(tail -n 1 <<< "$output")"
