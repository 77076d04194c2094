/* Not a good program: it ignores results, and each must get a warning. See must_use.sh. */
#include <mirab.h>

int main(void) {
    mirab_limiter *limiter = 0;
    mirab_decision decision;
    bool allowed;
    mirab_limiter_new("5/minute", "memory:", 0, 0, &limiter);                 /* ignored */
    mirab_limiter_acquire(limiter, (const uint8_t *)"k", 1, 1, 0, &decision); /* ignored */
    mirab_limiter_allow(limiter, (const uint8_t *)"k", 1, 1, 0, &allowed);    /* ignored */
    mirab_limiter_peek(limiter, (const uint8_t *)"k", 1, 1, 0, &decision);    /* ignored */
    mirab_limiter_reset(limiter, (const uint8_t *)"k", 1, 0);                 /* ignored */
    mirab_limiter_release(limiter, (const uint8_t *)"k", 1, &decision, 0, 0); /* ignored */
    mirab_limiter_refund(limiter, (const uint8_t *)"k", 1, &decision, 0, 0);  /* ignored */
    mirab_limiter_commit(limiter, (const uint8_t *)"k", 1, &decision, 1, 0);  /* ignored */
    mirab_limiter_wait(limiter, (const uint8_t *)"k", 1, 1, 0, 0, &decision); /* ignored */
    mirab_limiter_block(limiter, (const uint8_t *)"k", 1, 1, 0);              /* ignored */
    mirab_limiter_take_news(limiter, 0, &allowed, 0, 0);                      /* ignored */
    mirab_limiter_close(limiter, 0);                                          /* ignored */
    mirab_clients_trust_hops(0, 1, 0);                                        /* ignored */
    mirab_clients_key(0, 0, 0, 0, 0, &allowed, 0, 0);                         /* ignored */
    mirab_answers_set_body(0, "json", 0);                                     /* ignored */
    mirab_answer_status(0, 0, 0);                                             /* ignored */
    mirab_version();                                                          /* ignored */
    mirab_limiter_free(limiter);                                              /* has no result */
    return 0;
}
