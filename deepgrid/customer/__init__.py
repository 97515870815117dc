"""What a customer does on the grid: one session, and the steps of a submission."""
