"""Configuration of the operator's flows."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field

from blocks.block_schema import GridBlock
from blocks.grid import Grid, Wallet
from blocks.services import Services
from deepgrid.operator.session import OperatorSettings
from deepgrid.scheduling import market
from deepgrid.scheduling.market import SchedulerSettings


class Weights(BaseModel):
    """Weights of the parts of a cluster's score. A part is 0 at its best, and about 1 when it is clearly worse."""

    start: float = Field(default=1.0, ge=0, description="The estimated start.")
    price: float = Field(default=1.0, ge=0, description="The price per minute.")
    speed: float = Field(default=0.5, ge=0, description="The measured speed for the job's kind.")
    reliability: float = Field(default=1.0, ge=0, description="How often the provider failed lately.")
    spread: float = Field(default=0.2, ge=0, description="How busy the cluster is.")


class Operator(GridBlock):
    """The operator of a grid: its address book, and the wallet that may assign jobs."""

    _block_type_name = "deepgrid Operator"
    _block_type_slug = "deepgrid-operator"

    grid: Grid
    wallet: Wallet
    services: Services | None = Field(default=None, description="Empty for the URL in the address book.")
    state: Path = Field(description="Folder of the operator for its cursor on the chain.")
    approve_label_changes: bool = Field(
        default=False,
        description="Approve changes of approved providers automatically, if only measured labels change.",
    )

    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="Port of the metrics for Prometheus, on the loopback interface; 0 for none.",
    )
    assign_ahead_s: float = Field(
        default=60.0, ge=0, description="A job is assigned when its estimated start is at most this many seconds away."
    )
    half_life_hours: float = Field(
        default=24.0,
        gt=0,
        description="After this time, a customer's past use and a provider's past faults count half.",
    )
    max_tries: int = Field(
        default=10, ge=1, description="A job that clusters gave back this often is ended with a full refund."
    )
    weights: Weights = Field(
        default_factory=Weights, description="How much each part of the choice of a cluster counts."
    )

    def settings(self) -> OperatorSettings:
        """Convert to the settings of `deepgrid.operator`."""
        return OperatorSettings(
            book=self.grid.address_book,
            key_file=self.wallet.key_file,
            state=self.state,
            services_url=self.services.url if self.services else "",
            approve_label_changes=self.approve_label_changes,
            metrics_port=self.metrics_port,
            scheduler=SchedulerSettings(
                weights=market.Weights(**self.weights.model_dump()),
                assign_ahead_s=self.assign_ahead_s,
                half_life_s=self.half_life_hours * 3600,
                max_tries=self.max_tries,
            ),
        )
