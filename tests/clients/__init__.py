"""Clients that were written from the description of the grid's public interface alone."""
