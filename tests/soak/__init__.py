"""A whole grid under steady load for long, while each of its processes is restarted."""
