"""Groups of verbs. A module is imported when one of its verbs runs."""
