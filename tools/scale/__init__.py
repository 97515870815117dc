"""Figures of all benchmarks, and the model of a grid's size that follows from them.

`./run bench all` measures. `python -m tools.scale` writes the page of the model from the committed figures.
"""
