"""Clients that were written only from the description of the grid's public interface."""
