"""What verbs print: tables, lists, single objects, and the findings of doctors."""
