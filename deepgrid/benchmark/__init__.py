"""What a cluster can do, measured: scripts of real programs, and their output read. Nothing here runs anything."""
