"""The API of the client without `await`: each sync object runs an async one on an event loop in a thread."""
