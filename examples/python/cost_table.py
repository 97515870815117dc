"""Print the costs of a workflow at each cluster, for several durations. No credits move."""

from deepgrid import Grid

MINUTES = (10, 60, 600)

with Grid() as grid:
    quote = grid.estimate("hello-world.yaml", minutes=max(MINUTES))

print(f"{'cluster':12}", *(f"{minutes:>8} min" for minutes in MINUTES))
for offer in quote.offers:
    print(f"{offer.cluster:12}", *(f"{offer.rate * minutes:12.4f}" for minutes in MINUTES))
for misfit in quote.misfits:
    print(f"{misfit.cluster:12} {misfit.why}")
print(f"Lock {quote.needed:f} credits to run {quote.minutes} minutes at any of them.")
