"""Deploying the contracts and giving out their roles."""
