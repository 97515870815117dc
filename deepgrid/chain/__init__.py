"""The contracts as typed calls: `Chain` reads them, `Writer` sends transactions.

Failures are typed: ChainError for the node, ContractError for a revert, NotFound for a missing job or provider.
"""
