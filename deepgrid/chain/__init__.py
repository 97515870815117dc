"""The contracts as typed calls: `Chain` reads them, `Writer` sends transactions."""
