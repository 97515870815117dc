"""A Slurm cluster over SSH: `Cluster` asks it and acts on it; the rooms below hold how."""
