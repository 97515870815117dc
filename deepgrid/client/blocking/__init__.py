"""How the sync classes run the async ones: an event loop in a thread of its own."""
