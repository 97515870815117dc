"""Webhooks of customers about their own jobs: subscriptions, what is due, and deliveries to checked targets only."""
