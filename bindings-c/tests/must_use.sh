#!/bin/sh
# Whoever ignores a result is warned by the compiler: in C11, C23 and C++, at each such line and nowhere else;
# and every function that returns something is marked.
#
#   must_use.sh HEADER FLAGS...
set -eu
cd "$(dirname "$0")"
header=$1
shift

expected=$(grep -n '/\* ignored \*/' ignored.c | cut -d : -f 1)
for language in "cc -x c -std=c11" "cc -x c -std=c2x" "c++ -x c++ -std=c++11" "c++ -x c++ -std=c++17"; do
    found=$($language "$@" -c -o /dev/null ignored.c 2>&1 | sed -n 's/^ignored\.c:\([0-9]*\):.*warning.*/\1/p')
    [ "$found" = "$expected" ] || {
        echo "$language warns at the lines: $(echo $found), not: $(echo $expected)" >&2
        exit 1
    }
done

awk '/^(mirab_result|const char \*)/ && last != "MIRAB_MUST_USE" { print "not must-use: " $0; bad = 1 }
     { last = $0 }
     END { exit bad }' "$header" >&2
echo "must-use: 5 passed, 0 failed"
