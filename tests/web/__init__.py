"""The web app and its backend."""
