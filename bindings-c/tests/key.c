/* Keys are bytes: any of them, up to 64 KiB, and no key ever reaches another's bucket. */
#include "check.h"

static mirab_error error;

typedef struct {
    const uint8_t *bytes;
    size_t len;
} key;

/* Each key is taken a different number of times; then each must have its own count. */
static void keep_apart(const mirab_limiter *limiter, const key *keys, size_t count) {
    mirab_decision decision;
    for (size_t i = 0; i < count; i++)
        for (size_t taken = 0; taken <= i; taken++)
            CHECK_OK(mirab_limiter_acquire(limiter, keys[i].bytes, keys[i].len, 1, &error, &decision));
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(mirab_limiter_peek(limiter, keys[i].bytes, keys[i].len, 1, &error, &decision));
        CHECK_NUMBER(decision.used, i + 1);
    }
}

static void strange_keys(const char *store) {
    static uint8_t long_key[65537], other_long_key[10000];
    memset(long_key, 'k', sizeof long_key);
    memset(other_long_key, 'k', sizeof other_long_key);
    other_long_key[9999] = 'K';

    const key keys[] = {
        {bytes("a"), 1},
        {bytes("a\0"), 2},
        {bytes("a\0b"), 3},
        {bytes("\0"), 1},
        {bytes("a\"b'c"), 5},
        {bytes("{a}"), 3},
        {bytes("}{a"), 3},
        {bytes("%00"), 3},
        {bytes("a\r\nb"), 4},
        {bytes("\xff\xfe\x80"), 3},
        {bytes("\xd9\x85\xd8\xa7\xd8\xa1"), 6},
        {long_key, 128},
        {long_key, 129},
        {long_key, 10000},
        {other_long_key, 10000},
        {long_key, 65536},
    };
    mirab_limiter *limiter = limiter_on("100/year", store);
    mirab_decision decision;
    keep_apart(limiter, keys, sizeof keys / sizeof keys[0]);

    CHECK_FAILS(mirab_limiter_acquire(limiter, bytes(""), 0, 1, &error, &decision), MIRAB_INVALID_ARGUMENT,
                "key");
    CHECK_FAILS(mirab_limiter_acquire(limiter, NULL, 0, 1, &error, &decision), MIRAB_INVALID_ARGUMENT, "key");
    CHECK_FAILS(mirab_limiter_acquire(limiter, long_key, 65537, 1, &error, &decision), MIRAB_INVALID_ARGUMENT,
                "65537");
    CHECK_FAILS(mirab_limiter_reset(limiter, long_key, (size_t)-1, &error), MIRAB_INVALID_ARGUMENT,
                "length of key");
    mirab_limiter_free(limiter);
}

int main(void) {
    SCENE(strange_keys("memory:"));
    SCENE(strange_keys(test_shm()));
    SCENE(strange_keys(test_redis()));
    return tell(0);
}
