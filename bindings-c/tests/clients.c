/* Who is asking: what tests/http/addresses.json doesn't hold, since it is C's own. */
#include "check.h"

static mirab_error error;

static mirab_clients *clients_of(void) {
    mirab_clients *clients;
    CHECK_OK(mirab_clients_new(&error, &clients));
    return clients;
}

/* The key, empty where he isn't known. */
static const char *key_of(const mirab_clients *clients, const char *peer, const char *line) {
    static char key[MIRAB_CLIENT_KEY_SIZE + 1];
    bool known;
    memset(key, 0x55, sizeof key);
    CHECK_OK(mirab_clients_key(clients, peer, &line, line != NULL, &error, &known, key, sizeof key));
    CHECK(known == (*key != '\0'));
    return key;
}

static void nobody_is_trusted(void) {
    mirab_clients *clients = clients_of();
    CHECK_TEXT(key_of(clients, "192.0.2.7", "1.1.1.1"), "192.0.2.7");
    CHECK_TEXT(key_of(clients, "2001:db8:1:2::7", NULL), "2001:db8:1:2::/64");
    CHECK_TEXT(key_of(clients, NULL, "1.1.1.1"), "");
    CHECK_TEXT(key_of(clients, "", "1.1.1.1"), "");
    mirab_clients_free(clients);
}

/* The last word on whom to trust is what counts, in either form. */
static void trust_is_replaced(void) {
    mirab_clients *clients = clients_of();
    const char *proxies[] = {"10.0.0.0/8", "unix"};
    CHECK_OK(mirab_clients_trust(clients, proxies, 2, &error));
    CHECK_TEXT(key_of(clients, "10.0.0.1", "1.1.1.1, 192.0.2.7"), "192.0.2.7");
    CHECK_TEXT(key_of(clients, NULL, "1.1.1.1, 192.0.2.7"), "192.0.2.7");
    CHECK_OK(mirab_clients_trust_hops(clients, 2, &error));
    CHECK_TEXT(key_of(clients, "10.0.0.1", "1.1.1.1, 192.0.2.7"), "1.1.1.1");
    CHECK_OK(mirab_clients_trust(clients, proxies, 1, &error));
    CHECK_TEXT(key_of(clients, NULL, "1.1.1.1, 192.0.2.7"), "");
    CHECK_OK(mirab_clients_trust(clients, NULL, 0, &error));
    CHECK_TEXT(key_of(clients, "10.0.0.1", "1.1.1.1"), "10.0.0.1");
    mirab_clients_free(clients);
}

/* What a network sends may be no UTF-8: it is no address, and hides none to its right. */
static void any_bytes(void) {
    mirab_clients *clients = clients_of();
    const char *proxies[] = {"10.0.0.0/8"};
    CHECK_OK(mirab_clients_trust(clients, proxies, 1, &error));
    CHECK_TEXT(key_of(clients, "10.0.0.1", "1.1.1.1\xff, 192.0.2.7"), "192.0.2.7");
    CHECK_TEXT(key_of(clients, "10.0.0.1", "\xc3, 192.0.2.7"), "192.0.2.7");
    CHECK_TEXT(key_of(clients, "10.0.0.1", "192.0.2.7\x80"), "10.0.0.1");
    CHECK_TEXT(key_of(clients, "10.0.0.1\xff", "192.0.2.7"), "");
    mirab_clients_free(clients);
}

/* What can't be used changes nothing. */
static void settings(void) {
    mirab_clients *clients = clients_of();
    const char *good[] = {"10.0.0.0/8"}, *bad[] = {"192.0.2.0/24", "everyone"}, *all[] = {"0.0.0.0/0"}, *no_text[] = {"\xff"};
    CHECK_OK(mirab_clients_trust(clients, good, 1, &error));
    CHECK_OK(mirab_clients_set_header(clients, "X-Real-IP", &error));
    CHECK_OK(mirab_clients_set_ipv6_prefix(clients, 128, &error));
    CHECK_FAILS(mirab_clients_trust(clients, bad, 2, &error), MIRAB_INVALID_ARGUMENT, "\"everyone\"");
    CHECK_FAILS(mirab_clients_trust(clients, all, 1, &error), MIRAB_INVALID_ARGUMENT, "0.0.0.0/0");
    CHECK_FAILS(mirab_clients_trust(clients, no_text, 1, &error), MIRAB_INVALID_ARGUMENT, "one of proxies must be UTF-8");
    CHECK_FAILS(mirab_clients_trust(clients, good, SIZE_MAX, &error), MIRAB_INVALID_ARGUMENT, "length of proxies");
    CHECK_FAILS(mirab_clients_trust_hops(clients, -1, &error), MIRAB_INVALID_ARGUMENT, "-1");
    CHECK_FAILS(mirab_clients_trust_hops(clients, 33, &error), MIRAB_INVALID_ARGUMENT, "33 proxies");
    CHECK_FAILS(mirab_clients_trust_hops(clients, INT64_MAX, &error), MIRAB_INVALID_ARGUMENT, "9223372036854775807 proxies");
    CHECK_FAILS(mirab_clients_set_header(clients, "X-A, X-B", &error), MIRAB_INVALID_ARGUMENT, "\"X-A, X-B\"");
    CHECK_FAILS(mirab_clients_set_header(clients, "", &error), MIRAB_INVALID_ARGUMENT, "one header");
    CHECK_FAILS(mirab_clients_set_ipv6_prefix(clients, 0, &error), MIRAB_INVALID_ARGUMENT, "1 to 128");
    CHECK_FAILS(mirab_clients_set_ipv6_prefix(clients, 129, &error), MIRAB_INVALID_ARGUMENT, "129 bits");
    CHECK_FAILS(mirab_clients_set_ipv6_prefix(clients, 256 + 64, &error), MIRAB_INVALID_ARGUMENT, "320 bits");
    CHECK_TEXT(key_of(clients, "10.0.0.1", "2001:db8::7"), "2001:db8::7/128");
    mirab_clients_free(clients);
}

/* The longest key fits, and where one may not fit nothing is written. */
static void room(void) {
    mirab_clients *clients = clients_of();
    const char *longest = "1111:2222:3333:4444:5555:6666:7777:8888";
    char key[MIRAB_CLIENT_KEY_SIZE] = "untouched";
    bool known = true;
    CHECK_OK(mirab_clients_set_ipv6_prefix(clients, 128, &error));
    CHECK_FAILS(mirab_clients_key(clients, "192.0.2.7", NULL, 0, &error, &known, key, sizeof key - 1),
                MIRAB_INVALID_ARGUMENT, "out_key must have room for 64, not for 63");
    CHECK_TEXT(key, "untouched");
    CHECK_TEXT(key_of(clients, longest, NULL), "1111:2222:3333:4444:5555:6666:7777:8888/128");
    mirab_clients_free(clients);
}

int main(void) {
    SCENE(nobody_is_trusted());
    SCENE(trust_is_replaced());
    SCENE(any_bytes());
    SCENE(settings());
    SCENE(room());
    return tell(0);
}
