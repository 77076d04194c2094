"""Who is asking, and what he is told: the same bytes as from every other language.

clients = Clients(["10.0.0.0/8"])
answers = Answers(["draft-8"], body="problem")

key = clients.key(peer, lines_of_x_forwarded_for) or "anonymous"
answer = answers.answer(limiter.acquire(key))
if answer.status != 200:
    ...  # send answer.status, answer.headers, answer.body
"""

from mirab._mirab import Answer, Answers, Clients

__all__ = ["Answer", "Answers", "Clients"]
