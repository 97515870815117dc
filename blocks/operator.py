"""Configuration of the operator's flows."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from pydantic import Field

from blocks.grid import Grid, GridBlock, Services, Wallet
from deepgrid.operator.session import OperatorSettings
from deepgrid.scheduling.market import SchedulerSettings, Weights


class Operator(GridBlock):
    """The operator of a grid: its address book, and the wallet that may assign jobs."""

    _block_type_name = "deepgrid Operator"
    _block_type_slug = "deepgrid-operator"

    grid: Grid
    wallet: Wallet
    services: Services | None = Field(default=None, description="Empty for the URL in the address book.")
    state: Path = Field(description="Folder of the operator for its cursor on the chain.")
    approve_label_changes: bool = False
    """Approve changes of approved providers automatically, if only measured labels change."""
    metrics_port: int = Field(default=0, ge=0, le=65535)
    """Port of the metrics for Prometheus, on the loopback interface; 0 for none."""
    assign_ahead_s: float = Field(default=60.0, ge=0)
    """A job is assigned when its estimated start is at most this many seconds away."""
    half_life_hours: float = Field(default=24.0, gt=0)
    """After this time, a customer's past use and a provider's past faults count half."""
    age_share_per_day: float = Field(default=0.25, ge=0)
    """For each day of waiting, a customer's oldest job gains this share of the grid."""
    start_scale_s: float = Field(default=3600.0, gt=0)
    """An estimated start this far away scores as a price twice the lowest."""
    max_tries: int = Field(default=10, ge=1)
    """A job that clusters gave back this often is ended with a full refund."""
    free_cancels: int = Field(default=3, ge=0)
    """A customer may cancel this many jobs that kept a cluster and never ran; then its jobs wait."""
    weight_start: float = Field(default=1.0, ge=0, description="How much the estimated start counts.")
    weight_price: float = Field(default=1.0, ge=0, description="How much the price per minute counts.")
    weight_speed: float = Field(default=0.5, ge=0, description="How much the measured speed for the job's kind counts.")
    weight_reliability: float = Field(default=1.0, ge=0, description="How much the provider's recent faults count.")
    weight_spread: float = Field(default=0.2, ge=0, description="How much the load of a cluster counts.")

    def settings(self) -> OperatorSettings:
        """Convert to the settings of `deepgrid.operator`."""
        weights = Weights(**{one.name: getattr(self, f"weight_{one.name}") for one in fields(Weights)})
        rules = self.shared_with(SchedulerSettings) | {"half_life_s": self.half_life_hours * 3600}
        return OperatorSettings(
            book=self.grid.address_book,
            key_file=self.wallet.key_file,
            services_url=self.services.url if self.services else "",
            scheduler=SchedulerSettings(weights=weights, **rules),
            **self.shared_with(OperatorSettings),
        )
