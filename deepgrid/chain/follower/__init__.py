"""Following the chain: which jobs changed, and a durable index of hot jobs.

No change is lost while the process is down or when the chain is reorganised. A change may be reported twice.
"""
