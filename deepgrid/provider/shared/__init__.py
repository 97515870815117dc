"""The parts that all claims of a cluster share: the journal of claims, batched reads, the shipping of logs, and
wake-ups.
"""
