"""Configuration of deployments as Prefect blocks (`prefect block register -m blocks`).

Blocks hold addresses, endpoints and paths. They never hold a private key, because Prefect's database would expose it.
"""

from blocks.benchmarks import Benchmarks
from blocks.customer import Customer
from blocks.grid import Grid, Services, Wallet
from blocks.operator import Operator
from blocks.provider import Provider
from blocks.slurm_login import SlurmLogin

__all__ = ["Benchmarks", "Customer", "Grid", "Operator", "Provider", "Services", "SlurmLogin", "Wallet"]
