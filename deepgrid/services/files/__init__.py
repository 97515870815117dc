"""Files of customers: what a job gets as input, and what it leaves as output.

A bundle is a manifest (names, sizes, checksums) and the contents of its files as one row of bytes, kept in encrypted
parts. An address of a bundle is a capability: it names what its bearer may do, expires, and cannot be forged. Jobs get
nothing but addresses. Customers get theirs by a signed request.
"""
