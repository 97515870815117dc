"""The programs of the client's specification, word for word, and the same programs with the other kind of grid.

`rates` is predefined, and job 7 is any job of the customer. A program without its own grid runs in a block that opens
one.
"""

from __future__ import annotations

import textwrap

SUBMIT_AND_MAP = """
from deepgrid import Grid                                    # submit and wait

with Grid() as grid:
    job = grid.submit("train.yaml", credits=100, uses=["os=linux"], affinities=["mem>=4000"])
    print(job.id, job.cluster, job.waits_for)                # why, while it waits
    job.wait(timeout="2h")                                   # returns when it is over; raises WaitTimeout only
    print(job.status, job.exit_code, job.bill.cost)
    job.check()                                              # raises JobFailed and its kin

with Grid() as grid:                                         # 100 parameters
    sweep = grid.map("sweep.yaml", [{"RATE": r, "SEED": s} for r in rates for s in range(10)],
                     credits=100, at_once=20, key="sweep-7")   # asks for 2,000 credits at a time, not 10,000
    for job in sweep.as_completed():
        print(job.parameters, job.status, job.bill.cost)
    again = sweep.failed().retry()                           # only those
    print(sweep.summary())                                   # states, cost, refunds; a table in a notebook
"""

ASYNC_SUBMIT_AND_MAP = """
from deepgrid import AsyncGrid

async with AsyncGrid() as grid:
    job = await grid.submit("train.yaml", credits=100, uses=["os=linux"], affinities=["mem>=4000"])
    print(job.id, job.cluster, job.waits_for)
    await job.wait(timeout="2h")
    print(job.status, job.exit_code, job.bill.cost)
    await job.check()

async with AsyncGrid() as grid:
    sweep = await grid.map("sweep.yaml", [{"RATE": r, "SEED": s} for r in rates for s in range(10)],
                           credits=100, at_once=20, key="sweep-7")
    async for job in sweep.as_completed():
        print(job.parameters, job.status, job.bill.cost)
    again = await (await sweep.failed()).retry()
    print(await sweep.summary())
"""

ASYNC_LOG = """
async with AsyncGrid() as grid:                              # live log
    job = await grid.job(7)
    async for line in job.logs(follow=True):                 # survives outages; ends when the log is final
        print(line.arrived, line.text)
"""

LOG = """
with Grid() as grid:
    job = grid.job(7)
    for line in job.logs(follow=True):
        print(line.arrived, line.text)
"""

QUOTE_AND_DOWNLOAD = """
quote = grid.estimate("train.yaml", minutes=90, affinities=["gpu:in:a100"])    # cost, before money moves
for offer in quote.offers: print(offer.cluster, offer.rate, offer.cost)
print(quote.misfits, quote.block, quote.needed)              # why others do not; how fresh; least deposit

job = grid.run("train.yaml", credits=quote.needed)           # submit, wait, check; then its results
files = job.download("frames/", only="*.png")                # S3 or HTTP output that the workflow names; checked by size, resumed
"""  # noqa: E501 - as it is printed

ASYNC_QUOTE_AND_DOWNLOAD = """
quote = await grid.estimate("train.yaml", minutes=90, affinities=["gpu:in:a100"])
for offer in quote.offers: print(offer.cluster, offer.rate, offer.cost)
print(quote.misfits, quote.block, quote.needed)

job = await grid.run("train.yaml", credits=quote.needed)
files = await job.download("frames/", only="*.png")
"""


def opened(with_: str, text: str) -> str:
    """Return the program in a block that opens its grid."""
    return f"{with_} as grid:\n{textwrap.indent(text, ' ' * 4)}"


MAPS = {"sync": SUBMIT_AND_MAP, "async": ASYNC_SUBMIT_AND_MAP}
LOGS = {"sync": LOG, "async": ASYNC_LOG}
QUOTES = {
    "sync": opened("with Grid()", QUOTE_AND_DOWNLOAD),
    "async": opened("async with AsyncGrid()", ASYNC_QUOTE_AND_DOWNLOAD),
}
