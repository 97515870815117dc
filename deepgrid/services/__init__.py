"""The Job Definition service and the log service, and their client.

`client` is the client. `serve` runs the services; `app` puts them together from `definitions`, `logs`,
`notices` and `revocations`. `request_signing` defines signed requests, `session_keys` what signs for a wallet,
`messages` their bodies. `admission` limits strangers.
"""
