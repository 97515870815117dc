"""The sync classes: `Grid`, `Job` and their kin. `tools/sync_client` generates them from the async ones."""
