"""What jobs look like: states, ends and remarks in words, safe for terminals and notebooks."""
