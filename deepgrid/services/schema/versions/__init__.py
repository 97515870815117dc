"""The steps, one per file, in the order of `down_revision`. A step that was released never changes.

Databases of releases before the first step note no step. So the first two skip what exists.
"""
