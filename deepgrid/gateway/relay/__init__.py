"""The relay: reads of the chain for web pages, without showing them the node.

Only reads of this grid's contracts pass, within the limits of `WebLimits`. Equal reads of one block go to the node
once, for all pages together. Reads of the same moment go to the node as one batch. No answer names the node.
"""

from deepgrid.gateway.relay.handler import Relay

__all__ = ["Relay"]
