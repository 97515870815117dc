"""Measures clusters: batch scripts of real programs, and parsers of their output. Pure: nothing runs here.

`measuring` lists the programs, `outcome` turns their results into labels, `labels` defines these.
"""
