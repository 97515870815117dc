"""The handlers of the HTTP API. Each module has the routes of one subject.

`authentication` runs before all signed requests: it checks the signature, and uses up the nonce. What a handler needs
besides the request is in `deepgrid.services.context`.
"""
