#!/bin/sh
# What is installed, as the linker and pkg-config see it.
#
#   library.sh PREFIX VERSION
set -eu
prefix=$1
version=$2
library=$prefix/lib/libmirab.so.$version
passed=0
is() {
    [ "$2" = "$3" ] || { printf '%s: %s, not %s\n' "$1" "$2" "$3" >&2; exit 1; }
    passed=$((passed + 1))
}

is "soname" "$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')" libmirab.so.0
is "libmirab.so" "$(readlink "$prefix/lib/libmirab.so")" libmirab.so.0
is "libmirab.so.0" "$(readlink "$prefix/lib/libmirab.so.0")" "libmirab.so.$version"

# It exports what the header declares, and nothing else.
declared=$(sed -n 's/^[a-zA-Z].*[ *]\(mirab_[a-z0-9_]*\)(.*/\1/p' "$prefix/include/mirab.h" | sort)
is "exported" "$(nm -D --defined-only "$library" | awk '{ print $3 }' | sort)" "$declared"

# It needs nothing that isn't on every Linux.
is "needed" "$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -vE '^(libc|libm|libgcc_s|ld-linux.*)\.so\.[0-9]+$' || true)" ""

# pkg-config finds it wherever the folder is moved.
moved=$(mktemp -d)
trap 'rm -rf "$moved"' EXIT
cp -R "$prefix" "$moved/elsewhere"
asked() { PKG_CONFIG_PATH=$moved/elsewhere/lib/pkgconfig pkg-config "$@" mirab; }
is "version" "$(asked --modversion)" "$version"
is "libdir" "$(realpath "$(asked --variable=libdir)")" "$(realpath "$moved/elsewhere/lib")"
is "header" "$(realpath "$(asked --cflags-only-I | sed 's/^-I//; s/ *$//')/mirab.h")" "$(realpath "$moved/elsewhere/include/mirab.h")"
echo "library: $passed passed, 0 failed"
