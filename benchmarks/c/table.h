/*
 * What one writes by hand in an afternoon: a mutex around a hash table of token buckets. Keys of 16 bytes, yes or
 * no, nothing ever forgotten.
 */
#ifndef TABLE_H
#define TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEY_SIZE 16

static inline uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* An entry whose bucket was never used has full_at 0. */
struct entry {
    uint8_t key[KEY_SIZE];
    uint64_t full_at; /* when the bucket is full again */
};

struct table {
    pthread_mutex_t mutex;
    struct entry *entries;
    size_t size; /* a power of two */
    size_t used;
    uint64_t ns_per_token;
    uint64_t ns_to_fill;
};

static inline uint64_t fnv1a(const uint8_t *key) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < KEY_SIZE; i++)
        hash = (hash ^ key[i]) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

/* The entry of the key, or the empty one where it belongs. */
static inline struct entry *table_find(struct entry *entries, size_t size, const uint8_t *key) {
    size_t place = fnv1a(key) & (size - 1);
    while (entries[place].full_at != 0 && memcmp(entries[place].key, key, KEY_SIZE) != 0)
        place = (place + 1) & (size - 1);
    return &entries[place];
}

static struct entry *table_entries(size_t size) {
    struct entry *entries = calloc(size, sizeof *entries);
    if (entries == NULL)
        abort();
    return entries;
}

static void table_grow(struct table *table) {
    size_t size = table->size * 2;
    struct entry *entries = table_entries(size);
    for (size_t i = 0; i < table->size; i++)
        if (table->entries[i].full_at != 0)
            *table_find(entries, size, table->entries[i].key) = table->entries[i];
    free(table->entries);
    table->entries = entries;
    table->size = size;
}

static struct table *table_new(uint64_t amount, uint64_t seconds) {
    struct table *table = malloc(sizeof *table);
    if (table == NULL || pthread_mutex_init(&table->mutex, NULL) != 0)
        abort();
    table->size = 16;
    table->used = 0;
    table->entries = table_entries(table->size);
    table->ns_to_fill = seconds * 1000000000u;
    table->ns_per_token = table->ns_to_fill / amount;
    return table;
}

static inline bool table_admits(struct table *table, const uint8_t *key) {
    pthread_mutex_lock(&table->mutex);
    uint64_t now = now_ns();
    struct entry *entry = table_find(table->entries, table->size, key);
    bool fresh = entry->full_at == 0;
    uint64_t full_at = (entry->full_at > now ? entry->full_at : now) + table->ns_per_token;
    bool admitted = full_at - now <= table->ns_to_fill;
    if (admitted) {
        if (fresh)
            memcpy(entry->key, key, KEY_SIZE);
        entry->full_at = full_at;
        if (fresh && ++table->used > table->size / 4 * 3)
            table_grow(table);
    }
    pthread_mutex_unlock(&table->mutex);
    return admitted;
}

#endif
