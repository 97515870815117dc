"""`dps services doctor`: checks what can be wrong with the set-up of the services, and changes nothing.

`machine_checks` looks at files and programs, `store_checks` at the database, `front` at what clients reach. Each part
is checked separately, so a chain that is down does not hide a database of another release.
"""
