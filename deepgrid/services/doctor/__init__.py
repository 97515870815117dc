"""`dps services doctor`: checks what can be wrong with the set-up of the services, and changes nothing.

`examination` looks at files, programs and the database, `public_checks` at what others reach. Each part is checked
separately, so a chain that is down does not hide a database of another release.
"""
