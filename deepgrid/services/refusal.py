"""The exception by which handlers refuse a request."""

from __future__ import annotations


class Refusal(Exception):
    """An answer other than success: status, a sentence, and further fields of the body.

    `hang_up` closes the connection instead of reading the rest of an endless body. `retry_after_s` says when to retry
    the same request.
    """

    def __init__(
        self, status: int, sentence: str, *, hang_up: bool = False, retry_after_s: int | None = None, **further: int
    ) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.hang_up, self.further = status, sentence, hang_up, further
        self.retry_after_s = retry_after_s

    def headers(self) -> dict[str, str]:
        found = {"Connection": "close"} if self.hang_up else {}
        if self.retry_after_s is not None:
            found["Retry-After"] = str(self.retry_after_s)
        return found
