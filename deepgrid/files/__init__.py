"""Files that only their owner can read, written whole or not at all, and backups of them."""
