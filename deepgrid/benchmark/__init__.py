"""Benchmarks of clusters: batch scripts for real programs, and parsers for their output. Pure: nothing runs here.

`measuring` lists the programs, `outcome` turns their results into labels, and `labels` defines the labels.
"""
