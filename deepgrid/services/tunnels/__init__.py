"""Tunnels: encrypted connections between the customer of a running job and the supervisor of its cluster.

The services join two connections that both come from outside, and see only ciphertext. `secure_channel` has the key
agreement, `tunnel_frames` what is inside, `switchboard` the part of the services.
"""
