"""Jobs that one finds and repeats: their files, tags and notes, sweeps as groups.

The services keep the file of each job without its secrets. A copy with them stays on the machine that submitted it,
encrypted. An order to repeat a job comes from its file and from the chain, which keeps its terms.
"""
