"""What `dps services proxy` refuses, because nginx would not start with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from deepgrid.services.edge.proxy_file import ProxySettings
from deepgrid.services.storage.database import url_with_driver


def chosen(**more: object) -> ProxySettings:
    return ProxySettings.model_validate({"sockets": (Path("/run/services"),), "listen": ("127.0.0.1:8080",), **more})


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"listen": ("127.0.0.1:80808",)}, "80808 is no port"),
        ({"listen": ("0",)}, "0 is no port"),
        ({"listen": ("999.0.0.1:8080",)}, "does not appear to be an IPv4 or IPv6 address"),
        ({"clear_grpc": "[::1]:70000"}, "70000 is no port"),
        ({"workers": "abc"}, "must be auto, or a number"),
        ({"workers": "0"}, "must be auto, or a number"),
    ],
)
def test_what_nginx_would_refuse_is_refused_at_once(option: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        chosen(**option)


def test_usual_choices_are_accepted() -> None:
    assert chosen(listen=("127.0.0.1:65535", "[::1]:443"), workers="16").workers == "16"


def test_the_usual_spelling_of_tls_in_a_database_url_is_understood() -> None:
    assert url_with_driver("postgresql://u:p@h/d?sslmode=require").query == {"ssl": "require"}
