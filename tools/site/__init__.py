"""The documentation as a site: hooks for MkDocs at build time, and the pages that come from the code."""
