"""Signs requests to the services by a wallet or a session key, and checks signatures.

`request_signing` is the form of a signed request. `session_keys` are keys that sign for a wallet for some hours.
`signatures` are EIP-712 signatures in the domain of one grid. `signers` sign the requests of a client. Nothing here
needs a database: `storage.replays` refuses requests that come twice.
"""
