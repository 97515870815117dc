"""The market: clusters with prices for a shape of job, and an estimate of how long credits last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

from rich.style import Style
from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget

from deepgrid.errors import GridError, InputError
from deepgrid.plain_text import plain
from deepgrid.tui.screens.form import Field, Form
from deepgrid.tui.screens.frame import GridScreen
from deepgrid.tui.screens.money_forms import amount_of
from deepgrid.tui.widgets.table import Cell, Column, Table
from deepgrid.tui.widgets.text_pane import Line, SideText, pair, plain_line
from deepgrid.tui.words import amount, exact, short_address, span

if TYPE_CHECKING:
    from deepgrid.chain.node.values import TrackRecord
    from deepgrid.client.cluster_offers import Cluster

COLUMNS = (
    Column("name"),
    Column("address", 12),
    Column("per minute", 10, right=True),
    Column("nodes", 5, right=True),
    Column("CPUs", 5, right=True),
    Column("GB", 6, right=True),
    Column("GPUs", 4, right=True),
    Column("ran", 5, right=True),
    Column("broke", 5, right=True),
)
GONE = Style(dim=True)


class ClustersScreen(GridScreen):
    """All clusters with hardware, prices and record."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open_cluster", "hardware, labels, estimator", show=False),
        Binding("e", "open_cluster", "change the shape of the job", show=False),
        Binding("y", "copy", "copy the cluster's address", show=False),
        Binding("ctrl+r", "read", "read again", show=False),
    ]
    HEAD = "Clusters"
    KEYS = "enter hardware, labels, estimator  y copy address  ctrl+r read again  ? keys  q"

    def __init__(self) -> None:
        super().__init__()
        self._clusters: Sequence[Cluster] | None = None
        self._records: dict[str, TrackRecord] = {}
        self._failure = ""
        self._reading = False

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="body"):
            yield Table(COLUMNS, self._cells, id="table")
            yield SideText(id="side")

    def prepare(self) -> None:
        self.query_one(Table).focus()

    def on_screen_resume(self) -> None:
        self.show_news()  # the shape may have changed

    def action_read(self) -> None:
        self._reading = True
        self.run_worker(self._read(), group="clusters", exclusive=True)

    async def _read(self) -> None:
        assert self.live is not None
        try:
            self._clusters = [*await self.grid_app.grid.clusters()]
            self.show_news()
            for cluster in self._clusters:
                self._records[cluster.address] = await self.live.overview.record(cluster.address)
            self._failure = ""
        except GridError as error:
            self._failure = str(error)
        self._reading = False
        self.grid_app.show_news()  # also on the screen of one cluster

    def draw(self) -> None:
        super().draw()
        if self.live is None:
            self.instead(self.missing("Clusters"))
            return
        if self._clusters is None and not self._reading:
            self.action_read()
        self.head(f"Clusters; prices for {shape_words(self.grid_app.shape)}")
        clusters = self._clusters
        if clusters is None:
            self.instead(
                f"The clusters cannot be read.\n{self._failure}" if self._failure else self.missing("Clusters")
            )
            return
        self.instead("" if clusters else "This grid has no clusters yet.")
        self.query_one(Table).show(len(clusters), stale=self.stale or bool(self._failure))
        repeated = [name for name, count in Counter(one.name for one in clusters).items() if count > 1]
        if repeated and not self.stale:
            self.tell(f"Several clusters are called {plain(repeated[0])}: compare their addresses.", wrong=True)
        self._show_side()

    def _cells(self, row: int) -> Sequence[Cell]:
        assert self._clusters is not None
        one = self._clusters[row]
        record = self._records.get(one.address)
        style = Style() if one.provider.in_force else GONE
        try:
            price = amount(rate_at(one, self.grid_app.shape))
        except InputError:
            price = "?"
        offer = one.name, short_address(one.address), price if one.provider.in_force else standing(one)
        hardware = one.nodes, one.cpus, f"{one.memory_mb / 1000:.0f}", one.gpus
        ran = (record.started, record.panicked + record.timed_out) if record else ("?", "?")
        return [Cell(str(value), style) for value in (*offer, *hardware, *ran)]

    @property
    def cluster(self) -> Cluster | None:
        cursor = self.query_one(Table).cursor
        return self._clusters[cursor] if self._clusters and cursor < len(self._clusters) else None

    @on(Table.Moved)
    def _show_side(self) -> None:
        cluster = self.cluster
        lines = [] if cluster is None else [*cluster_lines(cluster, self._records.get(cluster.address))]
        self.query_one("#side", SideText).show(lines, stale=self.stale)

    def action_open_cluster(self) -> None:
        if self.cluster is not None:
            self.app.push_screen(ClusterScreen(self.cluster, self._records))

    def action_copy(self) -> None:
        if self.cluster is not None:
            self.app.copy_to_clipboard(self.cluster.address)
            self.tell(f"Copied {self.cluster.address}.")


class ClusterScreen(Form):
    """One cluster, and how long credits last there for a job of some shape."""

    KEYS = "enter next field   ctrl+p previous   pgup pgdn text   esc back"

    def __init__(self, cluster: Cluster, records: Mapping[str, TrackRecord]) -> None:
        super().__init__()
        self._cluster = cluster
        self._records = records
        self.HEAD = f"Cluster {plain(cluster.name)} ({short_address(cluster.address)})"

    def fields(self) -> Sequence[Field]:
        shape = self.grid_app.shape
        return [
            Field("tasks", "tasks", "processes", shape["tasks"]),
            Field("cpus", "CPUs", "CPUs per task", shape["cpus"]),
            Field("memory", "memory", "MB per CPU", shape["memory"]),
            Field("gpus", "GPUs", "GPUs of the job", shape["gpus"]),
            Field("credits", "credits", "credits to lock", shape["credits"]),
        ]

    def meaning(self) -> list[Line]:
        shape = self.grid_app.shape
        shape.update({name: self.value(name) for name in shape})
        lines = [*cluster_lines(self._cluster, self._records.get(self._cluster.address))]
        try:
            rate, locked = rate_at(self._cluster, shape), amount_of(shape["credits"])
        except InputError as error:
            return [plain_line(str(error), "red"), *lines]
        lasts = f"{int(locked / rate)} minutes ({span(int(locked / rate) * 60)})" if rate else "without a limit"
        return [
            pair("price", f"{exact(rate)} credits per minute"),
            pair("lasts", f"{exact(locked)} credits last {lasts}"),
            plain_line(""),
            *lines,
        ]

    def go_on(self) -> None:
        """Go from the last field back to the first one."""
        self.focus_next()


def rate_at(cluster: Cluster, shape: Mapping[str, str]) -> Decimal:
    """Return the credits per minute at a cluster for a typed shape of job. Raises InputError."""

    def number(name: str, least: int) -> int:
        text = shape[name]
        if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text) >= least):
            raise InputError(f"{text!r} is not a number of {name} from {least} on.")
        return int(text)

    tasks, cpus, memory_mb = (number(name, 1) for name in ("tasks", "cpus", "memory"))
    return cluster.rate(tasks=tasks, cpus_per_task=cpus, memory_mb_per_cpu=memory_mb, gpus=number("gpus", 0))


def shape_words(shape: Mapping[str, str]) -> str:
    return f"{shape['tasks']} x {shape['cpus']} CPU, {shape['memory']} MB per CPU, {shape['gpus']} GPU"


def standing(cluster: Cluster) -> str:
    """Return why a cluster gets no jobs; empty if it does."""
    return "banned" if cluster.banned else "" if cluster.approved else "waiting"


def cluster_lines(cluster: Cluster, record: TrackRecord | None) -> Iterator[Line]:
    """Hardware, prices, labels and record of a cluster."""
    yield pair("cluster", plain(cluster.name))
    yield pair("address", cluster.address)
    if out := standing(cluster):
        yield pair("state", out, "red")
    yield pair("hardware", f"{cluster.nodes} nodes, {cluster.cpus} CPUs, {cluster.memory_mb} MB, {cluster.gpus} GPUs")
    prices = (
        f"{exact(cluster.cpu_price)} per CPU, {exact(cluster.memory_price)} per GB, {exact(cluster.gpu_price)} per GPU"
    )
    yield pair("per minute", f"{prices} (credits)")
    if record is not None:
        words = (
            f"{record.started} started, {record.refused} refused, {record.panicked} panicked, {record.timed_out} late"
        )
        yield pair("record", words)
    labels = "  ".join(f"{label.key}={label.value}" for label in cluster.provider.labels if label.key != "name")
    yield pair("labels", plain(labels) or "none")
