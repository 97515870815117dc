"""The public API of the last release, and the parts of it that the working tree breaks."""
