"""The endpoints for browsers: the pages of the web app, the relay to the chain's node, and checks of workflows."""
