"""A simulated day of a large grid: real contracts, operator, services and books; simulated clusters and customers.

The chain's clock runs faster than the clock of this machine, so that a day fits into minutes. Each party sends real
transactions with its own key.
"""
