"""The one-machine grid with Prefect scaled out: two API servers behind a proxy, and a process for background services.

Redis holds their messages, cache and leases. Everything else is as in `deployments.onemachine`.
"""
