// The header in C++: it compiles without a warning and links to the same functions.
#include <mirab.h>

#include <cstdio>
#include <memory>
#include <string_view>

struct Free {
    void operator()(mirab_limiter *limiter) const { mirab_limiter_free(limiter); }
};

int main() {
    mirab_error error;
    mirab_limiter *made = nullptr;
    if (mirab_limiter_new("5/minute", "memory:", nullptr, &error, &made) != MIRAB_OK) return 1;
    const std::unique_ptr<mirab_limiter, Free> limiter(made);

    constexpr std::string_view key = "user:42";
    mirab_decision decision;
    const mirab_result result = mirab_limiter_acquire(
        limiter.get(), reinterpret_cast<const uint8_t *>(key.data()), key.size(), 1, &error, &decision);
    const bool right = result == MIRAB_OK && decision.allowed && decision.remaining == 4;
    std::printf("cxx: %d passed, %d failed\n", right, !right);
    return right ? 0 : 1;
}
