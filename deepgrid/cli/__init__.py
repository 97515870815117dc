"""The `dps` command: one file a group of verbs. Nothing heavy is imported before a verb needs it."""
