"""The Job Definition service and the log service, and their client.

`client` is the client. `serve` runs the services; `app` puts them together from `definitions`, `logs`,
`notices` and `revocations`. `request_signing` defines signed requests, `session_keys` what signs for a wallet,
`messages` their bodies. `admission` limits strangers, `following` serves readers of logs. `graphql` and `logger_api`
serve existing clients. `database` is the store, `schema` migrates it, `backup` saves it. `fence` refuses requests of
the time before a restore. `doctor` checks the set-up.
"""
