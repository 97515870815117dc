"""Tests of the download of outputs."""
