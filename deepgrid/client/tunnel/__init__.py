"""Sessions in a running job: commands, terminals and ports, through an encrypted tunnel to its cluster."""
