"""Daemons on one machine: how they are started, probed and ended, their ports, and the two servers that all need."""
