"""The processes of the grid, and the one-machine grid."""
