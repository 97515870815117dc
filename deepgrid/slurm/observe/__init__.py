"""What Slurm's answers mean. Pure: text in, values out."""
