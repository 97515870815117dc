"""The Job Definition service and the log service, and their client.

`serve` runs the services, and `app` puts them together. `handlers` answer the HTTP API; `messages` are its bodies.
`following` serves readers of logs. `signing` signs requests and checks them, `admission` limits strangers, `fence`
refuses requests of the time before a restore. `storage` is the store, `schema` migrates it, `backup` saves it. `client`
is the client, `doctor` checks the set-up.
"""
