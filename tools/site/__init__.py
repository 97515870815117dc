"""The documentation as a site: what MkDocs asks for at build time, and the pages that come from the code."""
