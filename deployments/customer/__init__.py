"""Deployments of the customer's flow."""
