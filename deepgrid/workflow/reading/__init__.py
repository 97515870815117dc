"""Reads workflow files: fits YAML, as people write it, to the models, and warns about fields without effect."""
