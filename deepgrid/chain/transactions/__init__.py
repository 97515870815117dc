"""Transactions of one key: signed, numbered, sent, and followed until they are final.

A transaction is mined at most once, in the order of its `send` call. A revert is a ContractError with a sentence.
"""
