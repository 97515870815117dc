"""Builds a release: wheel, project archive, changelog section, checksums. One commit always gives the same bytes."""
