#!/bin/sh
# The README's first example, word for word: it compiles as it says, and prints what it says.
#
#   readme.sh OUT      with PKG_CONFIG_PATH and LD_LIBRARY_PATH at the installed library
set -eu
here=$(cd "$(dirname "$0")" && pwd)
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$here/../README.md" | sed '1d;/^```$/,$d'; }

mkdir -p "$1"
cd "$1"
block c >example.c
sh -c "$(block sh | grep -F example.c) -Wall -Wextra -Werror"
[ "$(./example)" = "$(block text)" ] || {
    printf 'it prints:\n%s\nnot:\n%s\n' "$(./example)" "$(block text)" >&2
    exit 1
}
echo "readme: 1 passed, 0 failed"
