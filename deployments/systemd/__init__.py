"""systemd units of the roles, with their accounts, folders and environment files, made of `templates`."""
