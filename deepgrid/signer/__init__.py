"""The local signer of `dps web`: it signs and sends for the page with the key file that `dps` uses.

Promises:
* It never returns a key, and signs nothing that it has not rebuilt field by field for this grid.
* It answers only the page of its own address, whose user has opened the printed address with its token.
* If the system reveals the account of a connection, it answers only the account that runs it, and root.
* Each hour it allows at most a limited amount of credits to be locked, allowed or transferred.
* Each signature is a log line.
"""
