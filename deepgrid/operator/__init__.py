"""What the operator does: it assigns pending jobs, approves providers and takes claims back that nobody serves."""
