"""Print what a job costs at each cluster, and submit it at the cheapest one at no higher price."""

from deepgrid import Grid

with Grid() as grid:
    quote = grid.estimate("hello-world.yaml", minutes=90)
    for offer in quote.offers:
        print(f"{offer.cluster}: {offer.rate:f} credits per minute, {offer.cost:f} for {quote.minutes} minutes")
    for misfit in quote.misfits:
        print(f"{misfit.cluster}: {misfit.why}")
    job = grid.run("hello-world.yaml", credits=quote.needed, quote=quote)
    print(f"job {job.id} ran at {job.cluster}")
