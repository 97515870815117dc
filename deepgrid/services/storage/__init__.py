"""What the services keep: tables in SQLite or PostgreSQL, used nonces, and the encryption of customers' data.

`database` has the tables. A change of a table needs a step in `deepgrid.services.schema`. `vault` encrypts, `nonces`
uses up the nonces of requests.
"""
