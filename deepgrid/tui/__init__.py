"""The terminal app of a customer: `dps tui`.

It uses `deepgrid.client` only. Texts of strangers are cleaned and drawn as text, never as markup. Reads and
transactions are tasks, so that keys answer at any time. Only this package imports Textual.
"""
