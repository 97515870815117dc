"""One retried side effect each. A task is named by a verb, retries what is transient, fails at once on what is not."""
