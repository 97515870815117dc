"""One module per group of verbs. Each is imported when one of its verbs runs."""
