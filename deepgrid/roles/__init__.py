"""What each role's process holds open, and the single steps that it takes; Prefect only calls them."""
