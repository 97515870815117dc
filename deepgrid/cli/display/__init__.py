"""The output of verbs: tables, lists, single objects, and the findings of doctors."""
