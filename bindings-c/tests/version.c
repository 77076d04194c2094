/* The header, the library and Cargo.toml (CARGO_VERSION) tell one version. */
#include "check.h"

static void one_version(void) {
    char text[64];
    snprintf(text, sizeof text, "%d.%d.%d", MIRAB_VERSION_MAJOR, MIRAB_VERSION_MINOR, MIRAB_VERSION_PATCH);
    CHECK_TEXT(text, CARGO_VERSION);
    CHECK_TEXT(mirab_version(), CARGO_VERSION);

    CHECK_NUMBER(MIRAB_VERSION_NUMBER,
                 MIRAB_VERSION_MAJOR * 65536 + MIRAB_VERSION_MINOR * 256 + MIRAB_VERSION_PATCH);
#if MIRAB_VERSION_NUMBER < 0x000100
#error "the number can be compared by the preprocessor"
#endif
}

int main(void) {
    SCENE(one_version());
    return tell(0);
}
