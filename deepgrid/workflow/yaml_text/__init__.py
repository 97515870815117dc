"""YAML text as plain values, each with its line and column, and what is wrong with it in plain words."""
