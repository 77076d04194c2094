#!/bin/sh
# The README's first example, word for word: it compiles as it says, and prints what it says. The second reserves and
# settles three times where only two reservations fit; the third works twice where one place is; the fourth has
# nothing to tell; the fifth answers a client, who can't write himself another address, as it says. Each limit of its table can be made, and each function that it tells of is there.
#
#   readme.sh OUT      with PKG_CONFIG_PATH and LD_LIBRARY_PATH at the installed library
set -eu
here=$(cd "$(dirname "$0")" && pwd)
readme=$here/../README.md
block() { awk -v start="\`\`\`$1" -v wanted="${2:-1}" '/^```/ { on = $0 == start && ++seen == wanted; next } on' "$readme"; }

mkdir -p "$1"
cd "$1"
block c >example.c
sh -c "$(block sh | grep -F example.c) -Wall -Wextra -Werror"
[ "$(./example)" = "$(block text)" ] || {
    printf 'it prints:\n%s\nnot:\n%s\n' "$(./example)" "$(block text)" >&2
    exit 1
}

# part LIMITS BLOCK TIMES: what is a part of a program, so many times.
part() {
    cat <<C
    if (mirab_limiter_new("$1", "memory:", NULL, &error, &limiter) != MIRAB_OK) return 1;
    for (int i = 0; i < $3; i++) {
C
    block c "$2"
    echo '} mirab_limiter_free(limiter);'
}

{
    cat <<'C'
#include <mirab.h>
#include <stdio.h>
static int reports, asked;
static void make_report(void) { reports++; }
static int64_t ask_the_model(void) { asked++; return 100; }
int main(int count, char **limits) {
    const uint8_t key[] = "k";
    const size_t key_len = 1;
    mirab_error error;
    mirab_limiter *limiter;
    for (int i = 1; i < count; i++) {
        if (mirab_limiter_new(limits[i], "memory:", NULL, &error, &limiter) != MIRAB_OK) return puts(error.message);
        mirab_limiter_free(limiter);
    }
C
    part "1000/hour" 2 3
    part "concurrency: 1 for 30s" 3 2
    part "5/minute" 4 1
    echo 'return asked == 3 && reports == 2 ? 0 : 1; }'
} >part.c
sh -c "$(block sh | grep -F example.c | sed 's/example/part/g') -Wall -Wextra -Werror"

{
    cat <<'C'
#include <mirab.h>
#include <stdio.h>
#include <string.h>
C
    block c 5
    cat <<'C'
int main(void) {
    const char *lines[][1] = {{"192.0.2.7"}, {"1.1.1.1, 192.0.2.7"}, {"2.2.2.2, 192.0.2.7:99"}};
    mirab_error error;
    mirab_manual_clock *clock;
    mirab_options *options;
    mirab_limiter *limiter;
    if (!start(&error) || mirab_manual_clock_new(0, &error, &clock) != MIRAB_OK || mirab_options_new(&error, &options) != MIRAB_OK
        || mirab_options_set_manual_clock(options, clock, &error) != MIRAB_OK
        || mirab_limiter_new("2/minute", "memory:", options, &error, &limiter) != MIRAB_OK) return puts(error.message);
    for (int i = 0; i < 3; i++) {
        puts("---");
        respond(limiter, "10.0.0.1", lines[i], 1);
    }
    return 0;
}
C
} >answer.c
sh -c "$(block sh | grep -F example.c | sed 's/example/answer/g') -Wall -Wextra -Werror"
./answer | tr -d '\r' >answer.txt
[ "$(grep -c '^HTTP/1.1 200 OK$' answer.txt)" = 2 ]
[ "$(awk '/^---$/ { seen++; next } seen == 3' answer.txt)" = "$(block text 2)" ] || {
    printf 'it answers:\n%s\nnot:\n%s\n' "$(cat answer.txt)" "$(block text 2)" >&2
    exit 1
}
# The first column: `a limit` or `a limit`, `another`.
sed -n 's/^| \(`[^|]*`\) | `mirab_limit_.*/\1/p' "$readme" | tr ',' '\n' | sed 's/^ *`//; s/` *$//' >limits.txt
[ "$(wc -l <limits.txt)" = 9 ]
tr '\n' '\0' <limits.txt | xargs -0 ./part
for name in $(sed -n '/^| `mirab_limiter_`/,/^$/s/^| \(`[^|]*`\) |.*/\1/p' "$readme" | tr -d '`,' | sed 1d); do
    grep -q "mirab_limiter_$name(" "$here/../include/mirab.h" || { echo "mirab_limiter_$name is not in mirab.h" >&2; exit 1; }
done
echo "readme: 7 passed, 0 failed"
