"""Address of the grid's services, as seen from the machine that runs flows."""

from __future__ import annotations

from pydantic import Field

from blocks.block_schema import GridBlock


class Services(GridBlock):
    """The Job Definition and log services, if their URL differs from the one in the address book."""

    _block_type_name = "deepgrid Services"
    _block_type_slug = "deepgrid-services"

    url: str = Field(
        description="Base URL of the services, without a path, as seen from the machine that runs the flows."
    )
