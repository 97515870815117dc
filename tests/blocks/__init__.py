"""Tests of blocks as Prefect returns them."""
