"""Jobs x clusters -> assignments, and for each job that waits the reason. Pure."""
