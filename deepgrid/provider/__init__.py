"""What a provider's supervisor does: it carries claims to their settlement and keeps the cluster's books in order."""
