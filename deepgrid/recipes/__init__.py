"""Ways to use the client that need more than its own dependencies. Experimental: they may change in any release."""
