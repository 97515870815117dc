"""Limits of what a customer's own programs may lock."""
