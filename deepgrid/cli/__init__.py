"""The `dps` command: one file per group of verbs. Heavy libraries are imported only when a verb needs them."""
