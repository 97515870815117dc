"""Generates the modules of Protocol Buffers messages: `python -m tools.proto`, with `--check` to compare only."""
