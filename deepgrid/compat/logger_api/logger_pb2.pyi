from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class ReadRequest(_message.Message):
    __slots__ = ("address", "log_name", "timestamp", "signed_hash")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    LOG_NAME_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    SIGNED_HASH_FIELD_NUMBER: _ClassVar[int]
    address: str
    log_name: str
    timestamp: int
    signed_hash: bytes
    def __init__(self, address: _Optional[str] = ..., log_name: _Optional[str] = ..., timestamp: _Optional[int] = ..., signed_hash: _Optional[bytes] = ...) -> None: ...

class ReadResponse(_message.Message):
    __slots__ = ("data", "timestamp")
    DATA_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    timestamp: int
    def __init__(self, data: _Optional[bytes] = ..., timestamp: _Optional[int] = ...) -> None: ...

class WatchListRequest(_message.Message):
    __slots__ = ("address", "timestamp", "signed_hash")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    SIGNED_HASH_FIELD_NUMBER: _ClassVar[int]
    address: str
    timestamp: int
    signed_hash: bytes
    def __init__(self, address: _Optional[str] = ..., timestamp: _Optional[int] = ..., signed_hash: _Optional[bytes] = ...) -> None: ...

class WatchListResponse(_message.Message):
    __slots__ = ("log_names",)
    LOG_NAMES_FIELD_NUMBER: _ClassVar[int]
    log_names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, log_names: _Optional[_Iterable[str]] = ...) -> None: ...

class WriteRequest(_message.Message):
    __slots__ = ("log_name", "user", "data", "timestamp")
    LOG_NAME_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    log_name: str
    user: str
    data: bytes
    timestamp: int
    def __init__(self, log_name: _Optional[str] = ..., user: _Optional[str] = ..., data: _Optional[bytes] = ..., timestamp: _Optional[int] = ...) -> None: ...

class WriteResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
