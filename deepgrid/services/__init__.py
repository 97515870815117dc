"""The Job Definition service and the log service, and their client.

`client` is the client. `serve` runs the services; `app` puts them together from `definitions`, `logs` and
`notices`. `protocol` signs requests, `messages` defines their bodies, `admission` limits strangers.
"""
