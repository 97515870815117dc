"""`python -m tools.graphql_schema`: writes schema.graphql of the job service."""

from __future__ import annotations

from tools.graphql_schema import FILE, schema

FILE.write_text(schema())
