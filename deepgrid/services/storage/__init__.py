"""The data of the services: tables in SQLite or PostgreSQL, used nonces, and the encryption of customers' data.

`database` has the tables. A change of a table needs a step in `deepgrid.services.schema`. `vault` encrypts. `replays`
refuses requests that arrive twice, even after a restore.
"""
