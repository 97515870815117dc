"""Drills: a machine is lost while jobs run, and a new one begins with an old backup."""
