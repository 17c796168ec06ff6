#!/bin/bash
# Deadlines of tests only end a test that hangs: minutes, since other programs may have the processors. No
# test gets a second try.   usage: deadlines_test.sh ROOT
set -u
cd "$1" || exit 1
failed=0

complain()
{
    [ -z "$1" ] && return
    echo "$2:"
    echo "$1"
    failed=1
}

# Check ends a test after 4 seconds unless it is told otherwise, as check_main.h does.
complain "$(grep -rlE '\b(tcase|srunner)_create\(' tests | grep -v 'tests/check_main.h\|deadlines_test.sh')" \
    'cases of Check that are not made by check_case of tests/check_main.h'
complain "$(grep -rnE 'tcase_set_timeout\(\w+, ([0-9]|[0-9][0-9]|[12][0-9][0-9])\)' tests)" 'less than 300 s'
complain "$(grep -rnE 'TIMEOUT [0-9]{1,2}\b|TIMEOUT [1-5][0-9][0-9]\b' tests --include=CMakeLists.txt)" 'less than 600 s'
complain "$(grep -rnE '\b(timeout|patience)=([0-9]|[0-9][0-9]|[12][0-9][0-9])[,)]' tests --include='*.py')" \
    'less than 300 s'
complain "$(grep -rnE '\b(TIMEOUT|PATIENCE|DEADLINE\w*) = ([0-9]|[0-9][0-9]|[12][0-9][0-9])\b' tests --include='*.py')" \
    'less than 300 s'
complain "$(grep -rnE '\bDEADLINE_MS = [0-9]{1,5}\b|setTimeout\([0-9]{1,5}\b|reject\(.*\), [0-9]{1,5}\)' tests --include='*.js')" \
    'less than 100 s'
complain "$(grep -rnE '(loads|assert\w+)\(.*stdout\.readline\(\)' tests --include='*.py')" \
    'a line of a program that may have ended, without a word of why it did'
complain "$(grep -rn -e '--repeat until-pass' -e '--rerun-failed' scripts .ci CMakePresets.json)" 'a second try'
exit $failed
