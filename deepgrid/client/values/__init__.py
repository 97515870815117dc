"""What the client returns and takes: frozen values, exact amounts, wishes for a cluster, and their HTML."""
