"""The `dps` command.

`main` names all verbs, and `verbs` has them. `lazy` imports heavy libraries only when a verb needs them, and finds the
verbs that need Prefect. `error_boundary` turns errors into one line and an exit status, `access` finds the grid and the
key of a verb, `display` prints.
"""
