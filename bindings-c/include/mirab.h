/*
 * mirab: a rate limiter that shares its buckets with Python, Node and every other process.
 *
 * This file is made from the library's sources. Do not edit it.
 *
 *     #include <mirab.h>
 *
 *     mirab_limiter *limiter;
 *     mirab_decision decision;
 *     mirab_error error;
 *
 *     if (mirab_limiter_new("5/minute", "memory:", NULL, &error, &limiter) != MIRAB_OK)
 *       return fail(error.message);
 *
 *     if (mirab_limiter_acquire(limiter, (const uint8_t *)"user:42", 7, 1, &error, &decision)
 *         != MIRAB_OK)
 *       return fail(error.message);       // nothing was decided: the key is empty, say
 *
 *     if (decision.allowed)               // the only place where a request is admitted
 *       serve();
 *     else if (decision.never)            // no waiting helps
 *       refuse();
 *     else
 *       refuse_for(decision.retry_after_us);
 *
 *     mirab_limiter_free(limiter);
 *
 * The rules below hold for every function; the functions' own comments don't repeat them.
 *
 * Results. A function that can fail returns a mirab_result: MIRAB_OK, which is 0, or what
 *   went wrong. It never says who is admitted: a refused request is MIRAB_OK with `allowed`
 *   false in the decision. A compiler that can warns when a result is ignored.
 *
 * Stores that fail fail no call, unless "raise" was chosen: something else decides, and the
 *   decision is `degraded`. See mirab_options_set_on_store_failure.
 *
 * Errors. `error` is a mirab_error of yours, or NULL if the code is enough. On a failure it
 *   gets the code and one line that names the value and says what would be right; on
 *   success it isn't touched. There is no hidden last error, of the thread or the process.
 *
 * Outputs come last and are written only on success. They need no initial value, and none
 *   is read. No argument is both input and output, but a decision that is given back,
 *   settled or released.
 *
 * Handles (mirab_limiter, mirab_options, mirab_limit, mirab_manual_clock, mirab_clients,
 *   mirab_answers, mirab_answer) are made by a function that writes one to `out`, and are
 *   yours until you give them to the `_free` of their type: once, while no other thread uses
 *   them. `_free(NULL)` does nothing.
 *
 * Threads. A handle taken as a const pointer may be used by any number of threads at once;
 *   one taken as a plain pointer only by this one. Each type's comment says the same.
 *
 * Keys are bytes with a length and may hold any byte, NUL too. Nothing is read after the
 *   last one, and nothing is kept of them by address. Other text is UTF-8 ended by NUL.
 *
 * Numbers that you give are signed, so that a negative one is seen and refused and never
 *   taken for a huge one. Numbers that you get are unsigned. Times are whole microseconds,
 *   durations rounded up.
 *
 * NULL. A pointer that must point to something and is NULL gives MIRAB_NULL_POINTER, and
 *   nothing is done. A pointer that is neither NULL nor valid is your program's error.
 *
 * Panics. No Rust panic passes this border: the call returns MIRAB_PANIC, and the handle
 *   may still be freed.
 *
 * Versions. Functions, codes and fields are added and never changed or taken away while the
 *   soname stays. Reserved fields are zero.
 */


#ifndef MIRAB_H
#define MIRAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lets the compiler warn when a result is ignored. */
#if defined(__cplusplus)
#  if __cplusplus >= 201703L
#    define MIRAB_MUST_USE [[nodiscard]]
#  endif
#elif defined(__STDC_VERSION__)
#  if __STDC_VERSION__ >= 202311L
#    define MIRAB_MUST_USE [[nodiscard]]
#  endif
#endif
#if !defined(MIRAB_MUST_USE) && defined(__GNUC__)
#  define MIRAB_MUST_USE __attribute__((warn_unused_result))
#elif !defined(MIRAB_MUST_USE)
#  define MIRAB_MUST_USE
#endif

/* The version of this header. The number packs it into one that can be compared. */
#define MIRAB_VERSION_MAJOR 0
#define MIRAB_VERSION_MINOR 1
#define MIRAB_VERSION_PATCH 0
#define MIRAB_VERSION_NUMBER \
  ((MIRAB_VERSION_MAJOR << 16) | (MIRAB_VERSION_MINOR << 8) | MIRAB_VERSION_PATCH)

/**
 * Room for a message in `mirab_error`, its NUL byte included.
 */
#define MIRAB_ERROR_MESSAGE_SIZE 508

/**
 * `limit_index` when the key is blocked.
 */
#define MIRAB_LIMIT_BLOCK UINT32_MAX

/**
 * `retry_after_us` when there is nothing to wait for: admitted, or never.
 */
#define MIRAB_NO_RETRY UINT64_MAX

/**
 * The most limits that a limiter can have: an array of so many standings is never too small.
 */
#define MIRAB_MAX_LIMITS 16

/**
 * `next_after_us` when nothing is used.
 */
#define MIRAB_NO_NEXT UINT64_MAX

/**
 * `timeout_us` for waiting as long as it takes.
 */
#define MIRAB_FOREVER INT64_MAX

/**
 * `clock_ahead_us` when nothing is known of the store's clock.
 */
#define MIRAB_NO_CLOCK INT64_MIN

/**
 * Room for the store's address in `mirab_health`, its NUL byte included.
 */
#define MIRAB_HEALTH_STORE_SIZE 256

/**
 * Room for a word in `mirab_health`, its NUL byte included.
 */
#define MIRAB_HEALTH_WORD_SIZE 32

/**
 * Room in which a line of news is seldom cut, its NUL byte included.
 */
#define MIRAB_NEWS_SIZE 1024

/**
 * Room for the key of a client, its NUL byte included.
 */
#define MIRAB_CLIENT_KEY_SIZE 64

/**
 * How a call ended. `MIRAB_OK` is 0; everything else is a failure, and then nothing but
 * the `mirab_error` was written. A refused request isn't a failure: it is `MIRAB_OK` with
 * `allowed` false in the decision. A number never changes its meaning; later versions add
 * new ones, so keep a `default:` in a `switch`.
 */
enum mirab_result
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It worked.
     */
    MIRAB_OK = 0,
    /**
     * A limit's text or numbers can't be used.
     */
    MIRAB_INVALID_LIMIT = 1,
    /**
     * An argument other than a limit can't be used: a cost, a key, a time.
     */
    MIRAB_INVALID_ARGUMENT = 2,
    /**
     * The store's URI can't be used.
     */
    MIRAB_INVALID_URI = 3,
    /**
     * A file of rules can't be used.
     */
    MIRAB_INVALID_RULES = 4,
    /**
     * Understood, but this version or this store can't do it.
     */
    MIRAB_UNSUPPORTED = 5,
    /**
     * The limiter was closed.
     */
    MIRAB_CLOSED = 6,
    /**
     * The store can't be reached, or its file not be made.
     */
    MIRAB_STORE_UNAVAILABLE = 7,
    /**
     * The store didn't answer in time; the call may have been counted.
     */
    MIRAB_STORE_TIMEOUT = 8,
    /**
     * The store refused us: a wrong password, a missing permission, or another user's file.
     */
    MIRAB_STORE_DENIED = 9,
    /**
     * The store has no room.
     */
    MIRAB_STORE_FULL = 10,
    /**
     * The store holds something foreign under this key, or its file is foreign.
     */
    MIRAB_STORE_CORRUPT = 11,
    /**
     * The store isn't what the limiter expects: another layout or version.
     */
    MIRAB_STORE_MISMATCH = 12,
    /**
     * A failure inside mirab. Please report it.
     */
    MIRAB_INTERNAL = 13,
    /**
     * A pointer that must point to something is NULL.
     */
    MIRAB_NULL_POINTER = 100,
    /**
     * mirab panicked, and stopped the panic here. Please report it.
     */
    MIRAB_PANIC = 101,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mirab_result mirab_result;
#else
typedef uint32_t mirab_result;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Where the windows of a fixed window begin.
 */
enum mirab_anchor
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * At whole multiples of the period since 1970.
     */
    MIRAB_ANCHOR_CLOCK = 0,
    /**
     * At the first admitted request.
     */
    MIRAB_ANCHOR_FIRST = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum mirab_anchor mirab_anchor;
#else
typedef uint32_t mirab_anchor;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a client is told: to be sent where it refuses; where it admits, its header fields go with
 * your response.
 * Threads: may be shared; nothing changes it.
 * Lifetime: it stands alone; the texts that it lends live as long as it does.
 * NULL: `MIRAB_NULL_POINTER`, and nothing in `mirab_answer_free`.
 * Freeing: `mirab_answer_free`, once.
 */
typedef struct mirab_answer mirab_answer;

/**
 * How decisions are told to clients: made once, used for each.
 * Threads: one at a time, while it is being set; then any number may answer by it.
 * Lifetime: it stands alone, and copies what it is given; its answers may outlive it.
 * NULL: `MIRAB_NULL_POINTER`, and nothing in `mirab_answers_free`.
 * Freeing: `mirab_answers_free`, once.
 */
typedef struct mirab_answers mirab_answers;

/**
 * Finds who is asking. Where nobody is trusted, that is who has connected, whatever the request
 * says. A trusted proxy tells for whom it asks, in one header that is read from the right: what
 * stands to the left of the first address that isn't trusted was written by that client himself,
 * and nobody believes it.
 * Threads: one at a time, while it is being set; then any number may ask it.
 * Lifetime: it stands alone, and copies what it is given.
 * NULL: `MIRAB_NULL_POINTER`, and nothing in `mirab_clients_free`.
 * Freeing: `mirab_clients_free`, once.
 */
typedef struct mirab_clients mirab_clients;

/**
 * One limit. Most programs write limits as text to `mirab_limiter_new` and need none.
 * Threads: one at a time, while it is being set; then any number may read it.
 * Lifetime: a limiter copies it, so it may be freed before or after.
 * NULL: `MIRAB_NULL_POINTER`, and nothing in `mirab_limit_free`.
 * Freeing: `mirab_limit_free`, once.
 */
typedef struct mirab_limit mirab_limit;

/**
 * Limits on a store: it decides who passes.
 * Threads: may be shared; every function on it may run at the same time as any other.
 * Lifetime: it stands alone: options, limits and clocks that it was made with may go first.
 * NULL: `MIRAB_NULL_POINTER`, and nothing in `mirab_limiter_free`.
 * Freeing: `mirab_limiter_free`, once, when no thread is inside a call on it.
 */
typedef struct mirab_limiter mirab_limiter;

/**
 * A clock that stands still until you move it: tests need no sleeping.
 * Threads: may be shared; every function on it may run at the same time as any other.
 * Lifetime: limiters made with it keep it alive, so it may be freed before or after them.
 * NULL: `MIRAB_NULL_POINTER`, and nothing in `mirab_manual_clock_free`.
 * Freeing: `mirab_manual_clock_free`, once.
 */
typedef struct mirab_manual_clock mirab_manual_clock;

/**
 * What a limiter may be told beyond its limits and its store; unset means the default.
 * Threads: one at a time, while it is being filled.
 * Lifetime: a limiter copies what it needs; one set of options may make many limiters.
 * NULL: stands for all defaults where a limiter is made; else `MIRAB_NULL_POINTER`.
 * Freeing: `mirab_options_free`, once.
 */
typedef struct mirab_options mirab_options;

/**
 * What went wrong, in memory of your own, and written only when something does.
 * Threads: one error belongs to one call at a time.
 * Lifetime: it is plain data; copy it, keep it, reuse it for the next call.
 * NULL: every function takes NULL instead and then keeps the message to itself.
 * Freeing: nothing to free.
 */
typedef struct mirab_error {
    /**
     * The same code that the function returned.
     */
    mirab_result code;
    /**
     * What is wrong and what would be right: UTF-8, ended by NUL, cut when too long.
     */
    char message[MIRAB_ERROR_MESSAGE_SIZE];
} mirab_error;

/**
 * Your own clock: writes microseconds since 1970 to `now_us` and returns `MIRAB_OK`, or
 * returns any other number when it can't tell the time; that decision then fails.
 * It is called once a decision, on the thread that asks, and must be safe on any thread.
 * It must return: no `longjmp`, no C++ exception. `userdata` is what you gave with it.
 */
typedef uint32_t (*mirab_clock_fn)(void *userdata, uint64_t *now_us);

/**
 * The answer: whether the request is admitted, and what its client should be told.
 * Threads: plain data; each call fills one of yours.
 * Lifetime: copy it, keep it; it refers to nothing but its limiter's limits by number.
 * NULL: `MIRAB_NULL_POINTER`, and then nothing was decided.
 * Freeing: nothing to free. Its size is fixed: later versions use the reserved room.
 */
typedef struct mirab_decision {
    /**
     * Admit the request only when this is true.
     */
    bool allowed;
    /**
     * No waiting helps: the cost is above the capacity, or everything is refused.
     */
    bool never;
    /**
     * The store failed, and what `mirab_options_set_on_store_failure` says decided in its place.
     * There is nothing to give back: `mirab_limiter_refund` and the others do nothing.
     */
    bool degraded;
    uint8_t _reserved_flags[1];
    /**
     * Which of the limiter's limits decided, from 0, for `mirab_limiter_limit_name`;
     * `MIRAB_LIMIT_BLOCK` when `mirab_limiter_block` did.
     */
    uint32_t limit_index;
    /**
     * The capacity of the limit that decided, in units of cost.
     */
    uint64_t limit;
    /**
     * How many units are used: after this request when admitted, else before it.
     */
    uint64_t used;
    /**
     * How many units are left, at the same moment.
     */
    uint64_t remaining;
    /**
     * The same cost is admitted after so many microseconds, if nobody else comes; one
     * microsecond earlier it is not. `MIRAB_NO_RETRY` when admitted or never.
     */
    uint64_t retry_after_us;
    /**
     * Microseconds until nothing is used any more.
     */
    uint64_t reset_after_us;
    /**
     * Hold an admitted request so many microseconds before serving it.
     */
    uint64_t delay_us;
    /**
     * What it took, for `mirab_limiter_refund`, `_commit` and `_release` to read.
     */
    uint64_t _receipt[7];
    uint32_t _origin;
    uint32_t _settled;
    uint64_t _reserved[1];
} mirab_decision;

/**
 * Where one of the limiter's limits stands: after the request when it was admitted, else before
 * it.
 * Threads: plain data; each call fills some of yours.
 * Lifetime: copy it, keep it; it refers to nothing.
 * NULL: `MIRAB_NULL_POINTER`, and then nothing was decided.
 * Freeing: nothing to free. Its size is fixed: later versions use the reserved room.
 */
typedef struct mirab_standing {
    /**
     * Its capacity, in units of cost.
     */
    uint64_t limit;
    /**
     * How many units are used.
     */
    uint64_t used;
    /**
     * How many units are left.
     */
    uint64_t remaining;
    /**
     * Microseconds until nothing is used any more.
     */
    uint64_t reset_after_us;
    /**
     * Microseconds until `remaining` grows by one; `MIRAB_NO_NEXT` when nothing is used.
     */
    uint64_t next_after_us;
    uint64_t _reserved[3];
} mirab_standing;

/**
 * Counts of a limiter since it was made; `mirab_limiter_peek` isn't counted.
 * Threads: plain data; each call fills one of yours.
 * Lifetime: copy it, keep it; it refers to nothing.
 * NULL: `MIRAB_NULL_POINTER`.
 * Freeing: nothing to free. Its size is fixed: later versions use the reserved room.
 */
typedef struct mirab_stats {
    /**
     * Requests that were admitted.
     */
    uint64_t allowed;
    /**
     * Requests that were refused and may pass later.
     */
    uint64_t refused;
    /**
     * Requests that were refused for ever: a cost above the capacity, or `deny`.
     */
    uint64_t never;
    /**
     * Requests that were refused because the key is blocked.
     */
    uint64_t blocked;
    /**
     * Requests that were not decided: an error was returned.
     */
    uint64_t errors;
    /**
     * Units that `mirab_limiter_refund` and `mirab_limiter_commit` gave back.
     */
    uint64_t refunded;
    /**
     * Keys that the store keeps on this machine, of all its limiters; 0 on Redis.
     */
    uint64_t keys;
    /**
     * Live keys that the store forgot, or refused, for want of room; 0 on Redis.
     */
    uint64_t evicted;
    /**
     * Requests of the above that were decided in the store's place, since it failed.
     */
    uint64_t degraded;
    uint64_t _reserved[7];
} mirab_stats;

/**
 * How a store is: what an operator asks first. Texts are UTF-8, ended by NUL, cut when too long,
 * and empty when nothing is known.
 * Threads: plain data; each call fills one of yours.
 * Lifetime: copy it, keep it; it refers to nothing.
 * NULL: `MIRAB_NULL_POINTER`, and then nothing was asked.
 * Freeing: nothing to free. Its size is fixed: later versions use the reserved room.
 */
typedef struct mirab_health {
    /**
     * Whether the store answered just now, and is asked.
     */
    bool ok;
    /**
     * Whether the server has a limit of memory and would then drop the keys of limiters, which
     * gives their owners all their room back. Only known where `maxmemory_policy` isn't empty.
     */
    bool may_drop_keys;
    uint8_t _reserved_flags[2];
    /**
     * The layout of the state that this library writes.
     */
    uint32_t layout;
    /**
     * How often it went from "closed" to "open".
     */
    uint64_t opened;
    /**
     * How far the store's clock is ahead of this process's, to half a round trip; negative when it
     * is behind; `MIRAB_NO_CLOCK` when it has none of its own, or didn't tell.
     */
    int64_t clock_ahead_us;
    /**
     * "closed" while the store is asked, "open" while it isn't, after failures, "trial" while one
     * request tries it again.
     */
    char circuit[MIRAB_HEALTH_WORD_SIZE];
    /**
     * The server's version, such as "7.0.15"; empty where there is no server.
     */
    char server_version[MIRAB_HEALTH_WORD_SIZE];
    /**
     * What the server does when its memory is full.
     */
    char maxmemory_policy[MIRAB_HEALTH_WORD_SIZE];
    /**
     * The store, without user, password and parameters.
     */
    char store[MIRAB_HEALTH_STORE_SIZE];
    /**
     * What failed last; `MIRAB_OK` and no message when nothing has.
     */
    struct mirab_error last_error;
    /**
     * How long ago that was; 0 when nothing has failed.
     */
    uint64_t last_error_age_us;
    uint64_t _reserved[16];
} mirab_health;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library that the program runs with, such as "0.1.0"; the
 * `MIRAB_VERSION_*` macros are of the header that it was compiled with.
 * Never NULL. The text lives as long as the process; don't free it.
 */
MIRAB_MUST_USE const char *mirab_version(void);

/**
 * The name of a result code, the same word in every language: "store_timeout" for
 * `MIRAB_STORE_TIMEOUT`, "ok" for `MIRAB_OK`, "unknown" for a number that isn't one.
 * Never NULL. The text lives as long as the process; don't free it.
 */
MIRAB_MUST_USE const char *mirab_result_name(uint32_t result);

/**
 * Reads one limit, such as "100/second burst 300".
 */
MIRAB_MUST_USE
mirab_result mirab_limit_parse(const char *notation,
                               struct mirab_error *error,
                               struct mirab_limit **out);

/**
 * A bucket of `limit` units that refills `limit` units in `per_us` microseconds. For a
 * larger or smaller bucket of the same refill call `mirab_limit_set_capacity`.
 */
MIRAB_MUST_USE
mirab_result mirab_limit_token_bucket(int64_t limit,
                                      int64_t per_us,
                                      struct mirab_error *error,
                                      struct mirab_limit **out);

/**
 * A bucket of `capacity` units that refills `refill_rate` units a second, written exactly:
 * "5", "0.5", "1/3", "1e-3".
 */
MIRAB_MUST_USE
mirab_result mirab_limit_token_bucket_refilled(int64_t capacity,
                                               const char *refill_rate,
                                               struct mirab_error *error,
                                               struct mirab_limit **out);

/**
 * At most `limit` units in each window of `per_us` microseconds; `anchor` is a
 * `mirab_anchor`.
 */
MIRAB_MUST_USE
mirab_result mirab_limit_fixed_window(int64_t limit,
                                      int64_t per_us,
                                      uint32_t anchor,
                                      struct mirab_error *error,
                                      struct mirab_limit **out);

/**
 * Admitted requests leave at `limit` units in `per_us` microseconds: `delay_us` of a decision
 * says how long to hold one. At most `queue` wait, besides the one being served.
 */
MIRAB_MUST_USE
mirab_result mirab_limit_leaky_bucket(int64_t limit,
                                      int64_t per_us,
                                      int64_t queue,
                                      struct mirab_error *error,
                                      struct mirab_limit **out);

/**
 * `limit` units in `per_us` microseconds, where the window before this one counts by how
 * much of it still overlaps. Takes as little memory as a fixed window.
 */
MIRAB_MUST_USE
mirab_result mirab_limit_sliding_window(int64_t limit,
                                        int64_t per_us,
                                        struct mirab_error *error,
                                        struct mirab_limit **out);

/**
 * Never more than `limit` units in any `per_us` microseconds. With `buckets` from 1 to 1024,
 * which must divide `per_us`, it keeps so many counters and not an entry for each request,
 * and may refuse the width of one bucket longer; 0 means entries.
 */
MIRAB_MUST_USE
mirab_result mirab_limit_sliding_log(int64_t limit,
                                     int64_t per_us,
                                     int64_t buckets,
                                     struct mirab_error *error,
                                     struct mirab_limit **out);

/**
 * At most `limit` units in flight: what a decision took is given back by
 * `mirab_limiter_release`, and by itself `expires_us` microseconds after it was taken.
 */
MIRAB_MUST_USE
mirab_result mirab_limit_concurrency(int64_t limit,
                                     int64_t expires_us,
                                     struct mirab_error *error,
                                     struct mirab_limit **out);

/**
 * Sets how many units a token bucket holds when full. Other limits have no such number:
 * `MIRAB_INVALID_LIMIT`.
 */
MIRAB_MUST_USE
mirab_result mirab_limit_set_capacity(struct mirab_limit *limit,
                                      int64_t capacity,
                                      struct mirab_error *error);

/**
 * Names the limit: up to 64 of `A-Z a-z 0-9 . _ -`. Limits of one name on one key are the
 * same bucket, also when their numbers differ.
 */
MIRAB_MUST_USE
mirab_result mirab_limit_set_name(struct mirab_limit *limit,
                                  const char *name,
                                  struct mirab_error *error);

/**
 * Frees the limit. NULL is fine.
 */
void mirab_limit_free(struct mirab_limit *limit);

/**
 * Makes a clock that shows `start_us`, in microseconds since 1970, from 0 to 2^52.
 */
MIRAB_MUST_USE
mirab_result mirab_manual_clock_new(int64_t start_us,
                                    struct mirab_error *error,
                                    struct mirab_manual_clock **out);

/**
 * Moves the clock forward by `us` microseconds.
 */
MIRAB_MUST_USE
mirab_result mirab_manual_clock_advance_us(const struct mirab_manual_clock *clock,
                                           int64_t us,
                                           struct mirab_error *error);

/**
 * Sets the clock to `us` microseconds since 1970, backwards too.
 */
MIRAB_MUST_USE
mirab_result mirab_manual_clock_set_us(const struct mirab_manual_clock *clock,
                                       int64_t us,
                                       struct mirab_error *error);

/**
 * Reads the clock, in microseconds since 1970.
 */
MIRAB_MUST_USE
mirab_result mirab_manual_clock_now_us(const struct mirab_manual_clock *clock,
                                       struct mirab_error *error,
                                       uint64_t *out);

/**
 * Frees the clock. NULL is fine.
 */
void mirab_manual_clock_free(struct mirab_manual_clock *clock);

/**
 * Makes options with nothing set.
 */
MIRAB_MUST_USE mirab_result mirab_options_new(struct mirab_error *error, struct mirab_options **out);

/**
 * Lets limiters go by this clock, on every store, instead of the store's own. On shared stores
 * they keep their state apart from that of real time.
 */
MIRAB_MUST_USE
mirab_result mirab_options_set_manual_clock(struct mirab_options *options,
                                            const struct mirab_manual_clock *clock,
                                            struct mirab_error *error);

/**
 * Lets limiters go by a clock of your own. `read` and `userdata` must live until these
 * options and the last limiter made with them are freed; `userdata` may be NULL.
 */
MIRAB_MUST_USE
mirab_result mirab_options_set_clock_callback(struct mirab_options *options,
                                              mirab_clock_fn read,
                                              void *userdata,
                                              struct mirab_error *error);

/**
 * Who decides when the store fails: doesn't answer by its deadline, is away, full, refuses us, or
 * holds a foreign value.
 * "local", unless told otherwise: the same limits, kept in this process until the store decides
 * again, on Redis each bucket from where this process last saw it. "open": everybody is admitted. "closed":
 * everybody is refused, until the store is next looked for. "raise": nobody; the call fails.
 * All but the last give `MIRAB_OK` and a decision that is `degraded`; what is given back or settled
 * meanwhile is 0. `mirab_limiter_reset`, `_block` and `_unblock` fail in any case. A store in memory
 * doesn't fail: it is full only where that was chosen.
 */
MIRAB_MUST_USE
mirab_result mirab_options_set_on_store_failure(struct mirab_options *options,
                                                const char *choice,
                                                struct mirab_error *error);

/**
 * How many processes share the store, 1 (the default) to 2^32-1: while it fails, each of them
 * admits that part of every limit by itself, rounded up. With 1 each admits all of it.
 */
MIRAB_MUST_USE
mirab_result mirab_options_set_instances(struct mirab_options *options,
                                         int64_t instances,
                                         struct mirab_error *error);

/**
 * Frees the options. NULL is fine.
 */
void mirab_options_free(struct mirab_options *options);

/**
 * Makes a limiter from limits as text, such as "5/minute" or "100/second burst 300".
 * `store` is "memory:" (this limiter's own), "memory:NAME" (shared in the process), "shm:NAME"
 * (shared by all processes of this host and user that name it, without a server: what several
 * workers of one host should use) or "redis://HOST:PORT" (shared by all who name it;
 * "rediss://HOST:PORT" over TLS, "redis+unix:///PATH" through a socket). `options` may be NULL.
 * "memory:NAME?max_keys=100000" keeps so many keys at most, else a million: what says nothing any
 * more goes first, then what is full again soonest, unless "&when_full=refuse" makes a new key
 * `MIRAB_STORE_FULL`.
 * "shm:NAME" is a file of fixed size in /dev/shm ("shm:///PATH": that file), made by the first who
 * comes: "?max_keys=" (100000) and "log_entries=" (1024: the largest "sliding_log", twice the
 * largest "concurrency"; a larger one is `MIRAB_UNSUPPORTED`) say how large, "mode=" and "group=" for
 * whom. A file that can't be used is `MIRAB_STORE_UNAVAILABLE`, `_DENIED`, `_CORRUPT` or `_MISMATCH`
 * here. A process that is stopped while it decides is waited for "timeout_ms=" (1000), and then the
 * store has failed.
 * No socket is opened and no thread started before the first decision.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_new(const char *limits,
                               const char *store,
                               const struct mirab_options *options,
                               struct mirab_error *error,
                               struct mirab_limiter **out);

/**
 * Makes a limiter from `count` limits that were made one by one; else as
 * `mirab_limiter_new`.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_from_limits(const struct mirab_limit *const *limits,
                                       size_t count,
                                       const char *store,
                                       const struct mirab_options *options,
                                       struct mirab_error *error,
                                       struct mirab_limiter **out);

/**
 * Asks for `cost` units for a key, and takes them when they are there. A refusal takes
 * nothing. `cost` is 0 (always passes and takes nothing) to 2^53; `key` is 1 to 65536
 * bytes. Whether the request is admitted is in `out->allowed`, never in the result code.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_acquire(const struct mirab_limiter *limiter,
                                   const uint8_t *key,
                                   size_t key_len,
                                   int64_t cost,
                                   struct mirab_error *error,
                                   struct mirab_decision *out);

/**
 * As `mirab_limiter_acquire`, but only yes or no: the fastest way to ask.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_allow(const struct mirab_limiter *limiter,
                                 const uint8_t *key,
                                 size_t key_len,
                                 int64_t cost,
                                 struct mirab_error *error,
                                 bool *out);

/**
 * Says what `mirab_limiter_acquire` would answer now, and takes nothing.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_peek(const struct mirab_limiter *limiter,
                                const uint8_t *key,
                                size_t key_len,
                                int64_t cost,
                                struct mirab_error *error,
                                struct mirab_decision *out);

/**
 * Forgets what a key has used, and lifts its block. A key that was never seen is fine.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_reset(const struct mirab_limiter *limiter,
                                 const uint8_t *key,
                                 size_t key_len,
                                 struct mirab_error *error);

/**
 * Tells how many limits the limiter has, at most `MIRAB_MAX_LIMITS`.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_limit_count(const struct mirab_limiter *limiter,
                                       struct mirab_error *error,
                                       uint32_t *out);

/**
 * Lends the name of one of the limiter's limits: the name it was given, else its text in
 * canonical form; "block" for `MIRAB_LIMIT_BLOCK`. `index` is that of a decision or of a
 * standing. Don't free it; it lives as long as the limiter.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_limit_name(const struct mirab_limiter *limiter,
                                      uint32_t index,
                                      struct mirab_error *error,
                                      const char **out);

/**
 * Ends the limiter's work: every later question to it gives `MIRAB_CLOSED`, and so does
 * `mirab_limiter_wait` to threads that are in it now. Closing twice is fine. The store lives on
 * for others, and the limiter still has to be freed.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_close(const struct mirab_limiter *limiter,
                                 struct mirab_error *error);

/**
 * Frees the limiter, closing nothing that others share. NULL is fine.
 */
void mirab_limiter_free(struct mirab_limiter *limiter);

/**
 * As `mirab_limiter_acquire`, and writes where each limit stands to `out_standings`, in the
 * order of the limits. `room` is how many fit there: no fewer than the limiter has limits, so
 * `MIRAB_MAX_LIMITS` always will do; what is beyond the limits isn't touched. While the key is
 * blocked, each tells of the block: nothing is left, until it ends.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_acquire_with_standings(const struct mirab_limiter *limiter,
                                                  const uint8_t *key,
                                                  size_t key_len,
                                                  int64_t cost,
                                                  struct mirab_error *error,
                                                  struct mirab_decision *out,
                                                  struct mirab_standing *out_standings,
                                                  size_t room);

/**
 * As `mirab_limiter_peek`, and writes where each limit stands, as
 * `mirab_limiter_acquire_with_standings` does.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_peek_with_standings(const struct mirab_limiter *limiter,
                                               const uint8_t *key,
                                               size_t key_len,
                                               int64_t cost,
                                               struct mirab_error *error,
                                               struct mirab_decision *out,
                                               struct mirab_standing *out_standings,
                                               size_t room);

/**
 * As `mirab_limiter_acquire` for `count` keys in one step, in their order: each is admitted or
 * refused for itself, and the same key twice counts twice. `keys`, `key_lens`, `costs` and `out`
 * are arrays of `count` elements; `costs` may be NULL, for 1 each. When one of them can't be used
 * or decided, nothing is taken, and the message names its index: "item 3: ...".
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_acquire_many(const struct mirab_limiter *limiter,
                                        const uint8_t *const *keys,
                                        const size_t *key_lens,
                                        const int64_t *costs,
                                        size_t count,
                                        struct mirab_error *error,
                                        struct mirab_decision *out);

/**
 * As `mirab_limiter_acquire`, but sleeps until the request is admitted and due, at most
 * `timeout_us` microseconds; 0 asks once. A refusal in the end is no failure: `out` gets the last decision,
 * and at once when no wait helps or the promised instant lies beyond the timeout. An admitted
 * request of a leaky bucket has waited its `delay_us`, where that was within the timeout. Who
 * comes first among those who wait isn't promised. By a manual clock it advances the clock in
 * place of sleeping. A signal doesn't end it; `mirab_limiter_close` does: `MIRAB_CLOSED`.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_wait(const struct mirab_limiter *limiter,
                                const uint8_t *key,
                                size_t key_len,
                                int64_t cost,
                                int64_t timeout_us,
                                struct mirab_error *error,
                                struct mirab_decision *out);

/**
 * Gives back what `decision` took, never above full; leases end with it. `decision` is one that
 * this limiter gave for this key, else `MIRAB_INVALID_ARGUMENT`; it is marked, so that a second
 * call does nothing, also after `mirab_limiter_commit`. Of its copies give back only one.
 * `out_units` may be NULL; it gets the units given back, of several limits the most: 0 when the
 * request was refused, took nothing, was settled before, or counts no more. Of a leaky bucket
 * only the last in the queue may leave, before its turn. When the store didn't answer it is marked
 * too: nobody knows whether the store did it, and it must not be done twice. After any other error
 * it can be given back again.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_refund(const struct mirab_limiter *limiter,
                                  const uint8_t *key,
                                  size_t key_len,
                                  struct mirab_decision *decision,
                                  struct mirab_error *error,
                                  uint64_t *out_units);

/**
 * Settles `decision` at a cost that is known only afterwards: of less than it took the rest is
 * given back as by `mirab_limiter_refund`; of more the rest is charged now, whatever is left, at
 * most to empty. `actual_cost` is 0 to 2^53. Leases go on. `decision` is marked as there, and
 * nothing happens when the request was refused, took nothing, or was settled before.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_commit(const struct mirab_limiter *limiter,
                                  const uint8_t *key,
                                  size_t key_len,
                                  struct mirab_decision *decision,
                                  int64_t actual_cost,
                                  struct mirab_error *error);

/**
 * Gives back what `decision` took of `concurrency` limits; what it took of others stays taken.
 * `decision` is one that this limiter gave for this key, else `MIRAB_INVALID_ARGUMENT`; it is
 * marked, so that a second call ends nothing. `out_ended` may be NULL; it gets how many leases
 * still counted: 0 when the request was refused, took none, was released before, or its leases
 * have expired.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_release(const struct mirab_limiter *limiter,
                                   const uint8_t *key,
                                   size_t key_len,
                                   struct mirab_decision *decision,
                                   struct mirab_error *error,
                                   uint64_t *out_ended);

/**
 * Refuses a key for `for_us` microseconds, 1 to 2^50: under every limiter on this store and
 * prefix, at cost 0 and to `mirab_limiter_peek` too. A later block replaces it;
 * `mirab_limiter_unblock` and `mirab_limiter_reset` lift it.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_block(const struct mirab_limiter *limiter,
                                 const uint8_t *key,
                                 size_t key_len,
                                 int64_t for_us,
                                 struct mirab_error *error);

/**
 * Lifts the block of a key. A key that isn't blocked is fine.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_unblock(const struct mirab_limiter *limiter,
                                   const uint8_t *key,
                                   size_t key_len,
                                   struct mirab_error *error);

/**
 * Tells how often the limiter answered what. It never asks a store that isn't on this machine,
 * and works on a closed limiter too.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_stats(const struct mirab_limiter *limiter,
                                 struct mirab_error *error,
                                 struct mirab_stats *out);

/**
 * Tells how the limiter's store is, asked now: where that is a server, in a few round trips, each
 * within the deadline of a decision. A store that is away is what it tells, and no failure.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_health(const struct mirab_limiter *limiter,
                                  struct mirab_error *error,
                                  struct mirab_health *out);

/**
 * Takes the oldest line of what an operator should know of the limiter's store and was not told
 * yet: that it isn't asked any more and why, that it decides again; of shared memory, that its file
 * was made with another size (when the limiter is made), or was removed. Each line is told once, to one
 * of all limiters on the same store; of those that nobody takes the oldest go. `out` gets whether
 * there was one; if so, `out_line` gets it, UTF-8, ended by NUL, cut to `room` bytes (1 or more).
 * It asks no store, costs next to nothing when there is none, and works on a closed limiter too.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_take_news(const struct mirab_limiter *limiter,
                                     struct mirab_error *error,
                                     bool *out,
                                     char *out_line,
                                     size_t room);

/**
 * Makes clients of whom nobody is trusted to tell of others.
 */
MIRAB_MUST_USE mirab_result mirab_clients_new(struct mirab_error *error, struct mirab_clients **out);

/**
 * Trusts `count` proxies by their addresses: "10.0.0.0/8", "2001:db8::7", or the names "loopback",
 * "linklocal", "uniquelocal", "shared" (100.64.0.0/10) and "unix", for who connects through a
 * socket file. They take the place of those who were trusted before; 0 of them is nobody.
 */
MIRAB_MUST_USE
mirab_result mirab_clients_trust(struct mirab_clients *clients,
                                 const char *const *proxies,
                                 size_t count,
                                 struct mirab_error *error);

/**
 * Trusts that there are so many proxies, one behind the other, 0 (nobody) to 32, and that nobody
 * reaches the server but through them: else he says who he is. It takes the place of
 * `mirab_clients_trust`.
 */
MIRAB_MUST_USE
mirab_result mirab_clients_trust_hops(struct mirab_clients *clients,
                                      int64_t hops,
                                      struct mirab_error *error);

/**
 * The one header that the proxies write; "X-Forwarded-For", unless told otherwise. "Forwarded" is
 * read as RFC 7239 says, any other as a list of addresses.
 */
MIRAB_MUST_USE
mirab_result mirab_clients_set_header(struct mirab_clients *clients,
                                      const char *name,
                                      struct mirab_error *error);

/**
 * How many bits of an IPv6 address make a client, 1 to 128; 64, unless told otherwise.
 */
MIRAB_MUST_USE
mirab_result mirab_clients_set_ipv6_prefix(struct mirab_clients *clients,
                                           int64_t bits,
                                           struct mirab_error *error);

/**
 * Writes the key of the client to `out_key`, for `mirab_limiter_acquire`: "192.0.2.7" or
 * "2001:db8:1:2::/64", ended by NUL. `room` is `MIRAB_CLIENT_KEY_SIZE` or more. `out` gets whether
 * he is known; if not, the key is empty, which no limiter takes.
 * `peer` is the address that has connected, with or without a port; NULL or empty for a socket file.
 * `lines` are the `count` values of the header, one for each time that the request has it, in their
 * order; NULL is fine when there are none. Both may be any bytes: what is no address is nobody.
 */
MIRAB_MUST_USE
mirab_result mirab_clients_key(const struct mirab_clients *clients,
                               const char *peer,
                               const char *const *lines,
                               size_t count,
                               struct mirab_error *error,
                               bool *out,
                               char *out_key,
                               size_t room);

/**
 * Frees the clients. NULL is fine.
 */
void mirab_clients_free(struct mirab_clients *clients);

/**
 * Makes answers with the header fields of `count` families: any of "draft-8" (and to 11),
 * "draft-8-spaced", "draft-7", "draft-6", "x-ratelimit" and "x-ratelimit-epoch". Without one a
 * refusal has its Retry-After and no more.
 */
MIRAB_MUST_USE
mirab_result mirab_answers_new(const char *const *families,
                               size_t count,
                               struct mirab_error *error,
                               struct mirab_answers **out);

/**
 * The body of refusals: "none", unless told otherwise; "problem" for `application/problem+json`
 * (RFC 9457); "json" for a plain `application/json`.
 */
MIRAB_MUST_USE
mirab_result mirab_answers_set_body(struct mirab_answers *answers,
                                    const char *body,
                                    struct mirab_error *error);

/**
 * What the policy is called in place of the limit's name, where it has one limit.
 */
MIRAB_MUST_USE
mirab_result mirab_answers_set_policy_name(struct mirab_answers *answers,
                                           const char *name,
                                           struct mirab_error *error);

/**
 * A secret of 16 bytes or more, the same in all processes that answer the same clients: with it they
 * tell a client the same partition. Without one each process has one of its own.
 */
MIRAB_MUST_USE
mirab_result mirab_answers_set_partition_salt(struct mirab_answers *answers,
                                              const uint8_t *salt,
                                              size_t salt_len,
                                              struct mirab_error *error);

/**
 * Whether a client is told which of his buckets is meant: a salted hash of the key, as `pk` in the
 * families of draft-8. He isn't, unless told otherwise.
 */
MIRAB_MUST_USE
mirab_result mirab_answers_set_partitions(struct mirab_answers *answers,
                                          bool told,
                                          struct mirab_error *error);

/**
 * The longest that you hold a request for the `delay_us` of a leaky bucket, in microseconds; without
 * it, as long as it takes. An admitted request that would have to be held longer is answered as
 * refused, until it would not be: the decision says `allowed` and the answer's status is 429. Give
 * then back what it took, with `mirab_limiter_refund`.
 */
MIRAB_MUST_USE
mirab_result mirab_answers_set_max_hold(struct mirab_answers *answers,
                                        int64_t longest_us,
                                        struct mirab_error *error);

/**
 * Frees the answers. NULL is fine.
 */
void mirab_answers_free(struct mirab_answers *answers);

/**
 * As `mirab_limiter_acquire`, and writes the answer to `out_answer`, which is then yours to free.
 * Admit the request when its status is 200.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_acquire_with_answer(const struct mirab_limiter *limiter,
                                               const uint8_t *key,
                                               size_t key_len,
                                               int64_t cost,
                                               const struct mirab_answers *answers,
                                               struct mirab_error *error,
                                               struct mirab_decision *out,
                                               struct mirab_answer **out_answer);

/**
 * As `mirab_limiter_peek`, and writes what the client would be told, as
 * `mirab_limiter_acquire_with_answer` does.
 */
MIRAB_MUST_USE
mirab_result mirab_limiter_peek_with_answer(const struct mirab_limiter *limiter,
                                            const uint8_t *key,
                                            size_t key_len,
                                            int64_t cost,
                                            const struct mirab_answers *answers,
                                            struct mirab_error *error,
                                            struct mirab_decision *out,
                                            struct mirab_answer **out_answer);

/**
 * Tells the status: 200 where the request may pass, 429 where it may not, 503 where nobody could
 * decide, since the store failed and "closed" was chosen.
 */
MIRAB_MUST_USE
mirab_result mirab_answer_status(const struct mirab_answer *answer,
                                 struct mirab_error *error,
                                 uint32_t *out);

/**
 * Lends a header field, from 0 on, in their order: the Content-Type of the body is among them. `out`
 * gets whether there is one of that index; the rest is written only if so. Don't free the texts.
 */
MIRAB_MUST_USE
mirab_result mirab_answer_field(const struct mirab_answer *answer,
                                uint32_t index,
                                struct mirab_error *error,
                                bool *out,
                                const char **out_name,
                                const char **out_value);

/**
 * Lends the body of a refusal, UTF-8; NULL where there is none. Don't free it.
 */
MIRAB_MUST_USE
mirab_result mirab_answer_body(const struct mirab_answer *answer,
                               struct mirab_error *error,
                               const char **out);

/**
 * Frees the answer. NULL is fine.
 */
void mirab_answer_free(struct mirab_answer *answer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MIRAB_H */
