"""The `dps` command.

`main` names all verbs. `verbs` has one module per group of them, `contracts` those of the operator for the contracts.
Heavy libraries are imported only when a verb needs them (`lazy`). `border` turns errors into one line and an exit
status, `access` finds the grid and the key of a verb, `display` prints. `project` finds the verbs that need Prefect.
"""
