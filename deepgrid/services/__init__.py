"""The Job Definition service and the log service, and their client."""
