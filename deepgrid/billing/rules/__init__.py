"""The rules of the books: which claims are looked at, and the named differences, patterns and hints that they show."""
