/* The memory that programs share with the library: sizes, offsets and numbers are forever. */
#include "check.h"

#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field " moved")

_Static_assert(sizeof(mirab_decision) == 128, "mirab_decision changed its size");
_Static_assert(_Alignof(mirab_decision) == 8, "mirab_decision changed its alignment");
AT(mirab_decision, allowed, 0);
AT(mirab_decision, never, 1);
AT(mirab_decision, degraded, 2);
AT(mirab_decision, limit_index, 4);
AT(mirab_decision, limit, 8);
AT(mirab_decision, used, 16);
AT(mirab_decision, remaining, 24);
AT(mirab_decision, retry_after_us, 32);
AT(mirab_decision, reset_after_us, 40);
AT(mirab_decision, delay_us, 48);
AT(mirab_decision, _receipt, 56);
AT(mirab_decision, _origin, 112);
AT(mirab_decision, _settled, 116);
AT(mirab_decision, _reserved, 120);

_Static_assert(sizeof(mirab_standing) == 64, "mirab_standing changed its size");
_Static_assert(_Alignof(mirab_standing) == 8, "mirab_standing changed its alignment");
AT(mirab_standing, limit, 0);
AT(mirab_standing, used, 8);
AT(mirab_standing, remaining, 16);
AT(mirab_standing, reset_after_us, 24);
AT(mirab_standing, next_after_us, 32);
AT(mirab_standing, _reserved, 40);

_Static_assert(sizeof(mirab_stats) == 128, "mirab_stats changed its size");
_Static_assert(_Alignof(mirab_stats) == 8, "mirab_stats changed its alignment");
AT(mirab_stats, allowed, 0);
AT(mirab_stats, refused, 8);
AT(mirab_stats, never, 16);
AT(mirab_stats, blocked, 24);
AT(mirab_stats, errors, 32);
AT(mirab_stats, refunded, 40);
AT(mirab_stats, keys, 48);
AT(mirab_stats, evicted, 56);
AT(mirab_stats, degraded, 64);
AT(mirab_stats, _reserved, 72);

_Static_assert(sizeof(mirab_health) == 1024, "mirab_health changed its size");
_Static_assert(_Alignof(mirab_health) == 8, "mirab_health changed its alignment");
AT(mirab_health, ok, 0);
AT(mirab_health, may_drop_keys, 1);
AT(mirab_health, layout, 4);
AT(mirab_health, opened, 8);
AT(mirab_health, clock_ahead_us, 16);
AT(mirab_health, circuit, 24);
AT(mirab_health, server_version, 56);
AT(mirab_health, maxmemory_policy, 88);
AT(mirab_health, store, 120);
AT(mirab_health, last_error, 376);
AT(mirab_health, last_error_age_us, 888);
AT(mirab_health, _reserved, 896);

_Static_assert(sizeof(mirab_error) == 512, "mirab_error changed its size");
AT(mirab_error, code, 0);
AT(mirab_error, message, 4);

_Static_assert(sizeof(mirab_result) == 4, "mirab_result changed its size");
_Static_assert(MIRAB_NO_RETRY == UINT64_MAX, "MIRAB_NO_RETRY changed");
_Static_assert(MIRAB_NO_NEXT == UINT64_MAX, "MIRAB_NO_NEXT changed");
_Static_assert(MIRAB_FOREVER == INT64_MAX, "MIRAB_FOREVER changed");
_Static_assert(MIRAB_NO_CLOCK == INT64_MIN, "MIRAB_NO_CLOCK changed");
_Static_assert(MIRAB_LIMIT_BLOCK == UINT32_MAX, "MIRAB_LIMIT_BLOCK changed");
_Static_assert(MIRAB_MAX_LIMITS == 16, "MIRAB_MAX_LIMITS changed");
_Static_assert(MIRAB_CLIENT_KEY_SIZE == 64, "MIRAB_CLIENT_KEY_SIZE changed");

static void result_codes(void) {
    static const struct {
        mirab_result code;
        uint32_t number;
        const char *name;
    } results[] = {
        {MIRAB_OK, 0, "ok"},
        {MIRAB_INVALID_LIMIT, 1, "invalid_limit"},
        {MIRAB_INVALID_ARGUMENT, 2, "invalid_argument"},
        {MIRAB_INVALID_URI, 3, "invalid_uri"},
        {MIRAB_INVALID_RULES, 4, "invalid_rules"},
        {MIRAB_UNSUPPORTED, 5, "unsupported"},
        {MIRAB_CLOSED, 6, "closed"},
        {MIRAB_STORE_UNAVAILABLE, 7, "store_unavailable"},
        {MIRAB_STORE_TIMEOUT, 8, "store_timeout"},
        {MIRAB_STORE_DENIED, 9, "store_denied"},
        {MIRAB_STORE_FULL, 10, "store_full"},
        {MIRAB_STORE_CORRUPT, 11, "store_corrupt"},
        {MIRAB_STORE_MISMATCH, 12, "store_mismatch"},
        {MIRAB_INTERNAL, 13, "internal"},
        {MIRAB_NULL_POINTER, 100, "null_pointer"},
        {MIRAB_PANIC, 101, "panic"},
    };
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        CHECK_NUMBER(results[i].code, results[i].number);
        CHECK_TEXT(mirab_result_name(results[i].code), results[i].name);
    }
    CHECK_TEXT(mirab_result_name(14), "unknown");
    CHECK_TEXT(mirab_result_name(UINT32_MAX), "unknown");
}

int main(void) {
    SCENE(result_codes());
    return tell(0);
}
