"""The customer's side of the grid: orders (`order`), and sessions with the steps of a submission (`session`)."""
