"""The Job Definition service and the log service, and their client.

`serve` runs the services, and `app` puts them together. `handlers` answer the HTTP API; `messages` are its bodies.
`following` serves readers of logs. `signing` signs requests and checks them, `admission` limits strangers. `storage` is
the store, `schema` migrates it, `database_backup` saves it. `client` is the client, `doctor` checks the set-up.
"""
