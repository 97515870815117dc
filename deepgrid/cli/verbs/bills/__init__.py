"""Verbs about bills: receipts, usage, budgets, and messages about own jobs."""
