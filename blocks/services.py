"""How the grid's services are reached from where flows run."""

from __future__ import annotations

from pydantic import Field

from blocks.schema import GridBlock


class Services(GridBlock):
    """The Job Definition and log services, where the address book's URL is not the one to use."""

    _block_type_name = "deepgrid Services"
    _block_type_slug = "deepgrid-services"

    url: str = Field(
        description="Base URL of the services, without a path, as seen from the machine that runs the flows."
    )
