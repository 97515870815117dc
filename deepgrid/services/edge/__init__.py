"""The edge of the services: nginx is the only listener that others reach, and the services listen behind it.

TLS, HTTP/2, slow clients, sizes, and limits per source address are nginx's, in the one file that `proxy_file` makes.
The services listen on Unix sockets that only the proxy's account can open, or on loopback for a look.
"""
