"""The steps of a provider: it registers its cluster, claims jobs, carries them to settlement, and cleans up."""
