"""Settings of the client: how long it retries, how often it polls, how much it asks for at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Times and limits of a client. All durations are seconds.

    Attributes:
        patience_s: How long a single read is retried while the node or the services do not answer. Waiting for a
            job and following a log retry without a limit.
        requests_at_once: Number of requests to the services that run at the same time.
        poll_s: Interval between two looks at the jobs that are waited for.
        longest_pause_s: Longest pause between two retries.
        log_wait_s: How long the log service may hold one request while it waits for output.
        remarks_poll_s: Interval between two reads of the remarks on a job that is watched.
        queue_url: URL of a queue oracle that is asked for the place of waiting jobs, instead of the services.
        queue_poll_s: Interval between two reads of the place of a job that is watched.
        late_output_s: How long a live view waits for more output of a job that is over. The services close the log
            of such a job after 30 s.
        last_lines_s: How long the error of a failed job waits for the last lines of its output.
        confirmations: Blocks that must follow a block before `watch` of the grid reports its changes. With 0 a change
            is reported at once, and may be of a block that the chain replaces later.
        downloads_at_once: Number of files that `download` fetches at the same time.
        quote_age_s: Age at which a quote expires.
        key_wait_s: How long a submission waits while another one with the same idempotency key is under way.
        mining_wait_s: How long a submission with an idempotency key waits for earlier transactions to be mined.
        refill_s: After this time `map` requests the next jobs even if few of its places are free.
    """

    patience_s: float = 60.0
    requests_at_once: int = 16
    poll_s: float = 1.0
    longest_pause_s: float = 5.0
    log_wait_s: float = 20.0
    remarks_poll_s: float = 1.0
    queue_url: str = ""
    queue_poll_s: float = 5.0
    late_output_s: float = 45.0
    last_lines_s: float = 3.0
    confirmations: int = 0
    downloads_at_once: int = 8
    quote_age_s: float = 60.0
    key_wait_s: float = 120.0
    mining_wait_s: float = 120.0
    refill_s: float = 5.0


DEFAULTS = ClientSettings()
