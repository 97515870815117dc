"""The one-machine grid with Prefect scaled out: two API servers and a process for background services behind a proxy.

Redis carries their messages, cache and leases. Everything else is as in `deployments.onemachine`.
"""
