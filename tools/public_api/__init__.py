"""The public API of the last release, and what of it the working tree breaks."""
