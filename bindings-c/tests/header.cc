// The header in C++: it compiles without a warning and links to the same functions.
#include <mirab.h>

#include <cstdio>
#include <memory>
#include <string_view>

struct Free {
    void operator()(mirab_limiter *limiter) const { mirab_limiter_free(limiter); }
    void operator()(mirab_answers *answers) const { mirab_answers_free(answers); }
    void operator()(mirab_answer *answer) const { mirab_answer_free(answer); }
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
    bool right = result == MIRAB_OK && decision.allowed && decision.remaining == 4;

    const char *const families[] = {"draft-8"};
    mirab_answers *told = nullptr;
    if (mirab_answers_new(families, 1, &error, &told) != MIRAB_OK) return 1;
    const std::unique_ptr<mirab_answers, Free> answers(told);
    mirab_answer *made_answer = nullptr;
    if (mirab_limiter_peek_with_answer(limiter.get(), reinterpret_cast<const uint8_t *>(key.data()), key.size(), 9,
                                       answers.get(), &error, &decision, &made_answer) != MIRAB_OK)
        return 1;
    const std::unique_ptr<mirab_answer, Free> answer(made_answer);
    uint32_t status = 0;
    right = right && mirab_answer_status(answer.get(), &error, &status) == MIRAB_OK && status == 429;
    std::printf("cxx: %d passed, %d failed\n", right, !right);
    return right ? 0 : 1;
}
