"""What existing clients speak: GraphQL, the log service over gRPC and gRPC-web, and definitions without a signature.

It stands in front of the services and is mounted by `serving_existing_clients`. Without it, the services do all that
deepgrid's own clients need. Its requests have limits of their own: nothing that strangers send here takes the place of
a signed request. What needs much processor time runs in processes with a lower priority.

The package exports nothing: those processes import parts of it, and must start fast.
"""
