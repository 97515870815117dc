"""The protocols of existing clients: GraphQL, the log service over gRPC and gRPC-web, and definitions without a
signature.

`serving_existing_clients` mounts it in front of the services. Without it, the services do all that
deepgrid's own clients need. Its requests have limits of their own: nothing that strangers send here takes the place of
a signed request. What needs much processor time runs in processes with a lower priority.

The package exports nothing: those processes import parts of it, and must start fast.
"""
