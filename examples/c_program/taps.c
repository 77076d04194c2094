/*
 * Opens a tap for whoever is named, as long as his share of the water lasts.
 *
 *     taps USER [LITRES]
 *
 * Everybody has a tank of 5 litres that refills 1 litre a second. MIRAB_STORE says where the tanks stand: all
 * programs that name the same place share them, whatever their language. Unless told otherwise they stand in shared
 * memory, where the other examples have theirs: flask_app, express_app and node_http. Exits with 0 when the water
 * flows, 1 when it does not, and 2 when nobody could decide.
 */
#include <errno.h>
#include <inttypes.h>
#include <mirab.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOWS = 0, REFUSED = 1, UNDECIDED = 2 };

static const char LIMIT[] = "1/second burst 5";

static int undecided(const mirab_error *error) {
    fprintf(stderr, "taps: %s: %s\n", mirab_result_name(error->code), error->message);
    return UNDECIDED;
}

/* Seconds to one decimal, rounded up: nobody comes a moment too early. */
static void print_seconds(const char *before, uint64_t us, const char *after) {
    const uint64_t tenths = us / 100000 + (us % 100000 != 0);
    printf("%s%" PRIu64 ".%" PRIu64 "%s\n", before, tenths / 10, tenths % 10, after);
}

static int answer(const char *user, const mirab_decision *decision) {
    printf("%s: %" PRIu64 " of %" PRIu64 " litres left", user, decision->remaining, decision->limit);
    print_seconds(", full again in ", decision->reset_after_us, " s");
    if (decision->degraded) puts("(The store is away: this program decided alone.)");
    if (decision->allowed) {
        puts("Suv oqmoqda.");
        return FLOWS;
    }
    if (decision->never)
        puts("Kechirasiz, hovuzga buncha suv sig'maydi.");
    else
        print_seconds("Kechirasiz, navbatingiz kelmadi. Kuting: ", decision->retry_after_us, " soniya.");
    return REFUSED;
}

/* The whole of `text` as a number; the limiter itself judges which numbers will do. */
static bool read_number(const char *text, int64_t *number) {
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0') return false;
    *number = value;
    return true;
}

int main(int argc, char **argv) {
    int64_t litres = 1;
    if (argc < 2 || argc > 3 || (argc == 3 && !read_number(argv[2], &litres))) {
        fprintf(stderr, "usage: taps USER [LITRES]\n");
        return UNDECIDED;
    }
    const char *user = argv[1];
    const char *store = getenv("MIRAB_STORE");

    mirab_error error;
    mirab_limiter *limiter;
    if (mirab_limiter_new(LIMIT, store != NULL ? store : "shm:examples", NULL, &error, &limiter) != MIRAB_OK)
        return undecided(&error);

    mirab_decision decision;
    const mirab_result result =
        mirab_limiter_acquire(limiter, (const uint8_t *)user, strlen(user), litres, &error, &decision);
    mirab_limiter_free(limiter);
    return result == MIRAB_OK ? answer(user, &decision) : undecided(&error);
}
