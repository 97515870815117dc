"""What all claims of a cluster share: the journal of claims, batched reads, log shipping, and wake-ups."""
