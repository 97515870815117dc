"""What a customer can show and plan: signed receipts, usage, budgets."""
