/* Who is measured, and a loop that is compiled for each alone: choosing it costs one call a slot. */
#ifndef CONTENDERS_H
#define CONTENDERS_H

#include <mirab.h>
#include <stdatomic.h>

#include "table.h"

/* Decisions between two looks at the clock, so that looking costs nothing. */
#define BATCH 512
/* How many indexes an order holds; a power of two. */
#define ORDER (1u << 20)
/* Keeps every key: the default is a million, and then one is forgotten for each that comes. */
#define ROOMY "memory:?max_keys=4000000"

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* In mirab's notation, and the first of them for who has no other. */
struct limits {
    const char *notation;
    uint64_t amount, seconds;
};

struct keys {
    uint8_t (*all)[KEY_SIZE];
    size_t count;
    uint32_t *order; /* NULL for one key: it costs no memory to walk through */
};

/* A contender's state and what it is asked for. */
struct subject {
    mirab_limiter *limiter;
    struct table *table;
    _Atomic uint64_t word;
    bool admits;
    struct keys keys;
};

struct tally {
    uint64_t count, admitted;
};

struct contender {
    const char *name, *kind, *note;
    bool (*once)(struct subject *, const uint8_t *key);
    struct tally (*run)(struct subject *, size_t from, uint64_t ns);
};

static inline bool allow(struct subject *subject, const uint8_t *key) {
    mirab_error error;
    bool allowed;
    if (mirab_limiter_allow(subject->limiter, key, KEY_SIZE, 1, &error, &allowed) != MIRAB_OK)
        fail("mirab.allow: %s", error.message);
    return allowed;
}

static inline bool acquire(struct subject *subject, const uint8_t *key) {
    mirab_error error;
    mirab_decision decision;
    if (mirab_limiter_acquire(subject->limiter, key, KEY_SIZE, 1, &error, &decision) != MIRAB_OK)
        fail("mirab.acquire: %s", error.message);
    (void)*(volatile uint64_t *)&decision.remaining;
    return decision.allowed;
}

static inline bool hand_written(struct subject *subject, const uint8_t *key) {
    return table_admits(subject->table, key);
}

/* What no limiter can leave out: it must know the time and, when it admits, count where others see it. */
static inline bool least(struct subject *subject, const uint8_t *key) {
    (void)key;
    (void)*(volatile uint64_t *)&(uint64_t){now_ns()};
    if (subject->admits)
        atomic_fetch_add(&subject->word, 1);
    else
        (void)atomic_load(&subject->word);
    return subject->admits;
}

#define CONTENDER(admits)                                                                                \
    static bool admits##_once(struct subject *subject, const uint8_t *key) {                            \
        return admits(subject, key);                                                                     \
    }                                                                                                    \
    static struct tally admits##_run(struct subject *subject, size_t from, uint64_t ns) {               \
        const struct keys *keys = &subject->keys;                                                        \
        struct tally tally = {0, 0};                                                                     \
        uint64_t deadline = now_ns() + ns;                                                               \
        do {                                                                                             \
            for (size_t i = from + tally.count; i < from + tally.count + BATCH; i++)                     \
                tally.admitted += admits(subject, keys->all[keys->order ? keys->order[i % ORDER] : 0]); \
            tally.count += BATCH;                                                                        \
        } while (now_ns() < deadline);                                                                   \
        return tally;                                                                                    \
    }

CONTENDER(allow)
CONTENDER(acquire)
CONTENDER(hand_written)
CONTENDER(least)

static const struct contender CONTENDERS[] = {
    {"mirab.allow", "mirab", "yes or no; exact to the microsecond", allow_once, allow_run},
    {"mirab.acquire", "mirab", "the full decision, one field read", acquire_once, acquire_run},
    {"hand-written", "peer", "a mutex around a hash table; yes or no, keys of 16 bytes only, nothing ever forgotten",
     hand_written_once, hand_written_run},
    {"atomic+clock", "floor", "one atomic word and one clock_gettime", least_once, least_run},
};

#define CONTENDER_COUNT (sizeof CONTENDERS / sizeof *CONTENDERS)

/* Fills what the contender of that number needs. */
static void subject_init(struct subject *subject, size_t number, struct limits limits, struct keys keys) {
    memset(subject, 0, sizeof *subject);
    subject->keys = keys;
    subject->admits = limits.amount > 1;
    mirab_error error;
    if (strncmp(CONTENDERS[number].name, "mirab.", 6) == 0) {
        if (mirab_limiter_new(limits.notation, ROOMY, NULL, &error, &subject->limiter) != MIRAB_OK)
            fail("%s", error.message);
    } else {
        subject->table = table_new(limits.amount, limits.seconds);
    }
}

#endif
