"""The display of jobs: states, ends and remarks in words, safe for terminals and notebooks."""
