"""The stub of the client's sync classes, from the sources of the async classes."""
