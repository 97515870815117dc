"""The log service as existing clients call it: `logger.v1alpha1.LoggerAPI` over gRPC and gRPC-web.

`METHODS` holds the methods, independent of their transport. `grpc_server` serves them over HTTP/2, on a port of its
own for a proxy; `grpc_web` as routes of the HTTP application. `logger_pb2` is generated from `logger.proto`.
"""

from deepgrid.compat.logger_api.grpc_server import serving_grpc
from deepgrid.compat.logger_api.grpc_web import router

__all__ = ["router", "serving_grpc"]
