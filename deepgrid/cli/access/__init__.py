"""The resources of a verb: the grid and its address book, the key file, settings of the environment, and consent."""
