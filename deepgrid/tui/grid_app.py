"""The app: its screens, the connection behind them, transactions, and how it ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.screen import Screen

from deepgrid.errors import GridError
from deepgrid.tui.live_data import LiveData
from deepgrid.tui.screens.frame import GridScreen
from deepgrid.tui.screens.jobs import JobsScreen
from deepgrid.tui.screens.questions import KeysScreen, Question

if TYPE_CHECKING:
    from deepgrid.client.grid import AsyncGrid
    from deepgrid.client.job import AsyncJob

OpenGrid = Callable[[], "AsyncGrid"]
LOOK_UP = "`dps job list` and `dps credit get` show whether it was carried out"


class GridApp(App[None], inherit_bindings=False):
    """The terminal app.

    Attributes:
        live: Live data; None until the grid was opened.
        failure: The error that ended the app; None if the user left.
        in_flight: What transactions that are being sent do, in words.
        shape: The shape of job that prices of clusters are shown for, as it is typed.
        files: Workflow files of the jobs that were submitted in this run, by job id.
        submitted: A job that was just submitted; the table of jobs moves its cursor there once.
    """

    CSS_PATH = Path(__file__).with_name("style.tcss")
    ENABLE_COMMAND_PALETTE = True
    TITLE = "dps"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "help_keys", "keys", show=False),
        Binding("colon", "command_palette", "palette", show=False),
        Binding("ctrl+c", "leave_app", "leave the app", show=False, priority=True),
    ]

    def __init__(
        self,
        open_grid: OpenGrid,
        customer: str = "",
        *,
        now: Callable[[], float] = time.time,
        driver_class: type[Driver] | None = None,
    ) -> None:
        super().__init__(driver_class=driver_class, ansi_color=True)  # or NO_COLOR would turn colours into greys
        self.theme = "ansi-dark"  # the 16 colours of the user's terminal, and its background
        self.animation_level = "none"
        self.now = now
        self.live: LiveData | None = None
        self.failure: BaseException | None = None
        self.in_flight: dict[object, str] = {}
        self.files: dict[int, Path] = {}
        self.submitted: int | None = None
        self.shape = {"tasks": "1", "cpus": "1", "memory": "1000", "gpus": "0", "credits": "100"}
        self.problem = ""
        self.read_only = bool(customer)
        self._open_grid = open_grid
        self._customer = customer
        self._grid: AsyncGrid | None = None

    # -- life --------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.push_screen(JobsScreen())
        self.run_worker(self._serve(), name="grid")

    async def _serve(self) -> None:
        """Open the grid, and read it until the app ends."""
        try:
            await asyncio.to_thread(import_module, "deepgrid.tui.overview")  # takes a second; the screen is there
            from deepgrid.tui.overview import Overview

            self._grid = self._open_grid()
            self.live = LiveData(Overview(self._grid, self._customer or self._grid.address), self.show_news, self.now)
            await self.live.run()
        except GridError as error:
            self.problem = str(error)
            self.show_news()

    async def on_unmount(self) -> None:
        if self._grid is not None:
            await self._grid.close()

    def show_news(self) -> None:
        """Let the screens draw what changed."""
        if self._running and self.screen_stack:
            for screen in self.screen_stack:
                if isinstance(screen, GridScreen) and screen.is_mounted:
                    screen.show_news()

    @property
    def grid(self) -> AsyncGrid:
        """The open grid."""
        assert self._grid is not None
        return self._grid

    # -- transactions ------------------------------------------------------------------------

    def send(self, what: str, send: Callable[[], Awaitable[str]], then: Callable[[str, bool], None]) -> None:
        """Send a transaction in the background. `what` names it; `then` gets the outcome and whether it succeeded."""
        self.in_flight[send] = what
        self.run_worker(self._send(send, then), name="transaction", group="transactions")
        self.show_news()

    async def _send(self, send: Callable[[], Awaitable[str]], then: Callable[[str, bool], None]) -> None:
        try:
            words, done = await send(), True
        except GridError as error:
            words, done = str(error), False
        self.in_flight.pop(send)  # not if the app ends now: then it says what was being sent
        if self.live is not None:
            self.live.refresh()
        then(words, done)
        self.show_news()

    def tell(self, words: str, *, wrong: bool = False) -> None:
        """Show a sentence at the bottom of the screens."""
        for screen in self.screen_stack:
            if isinstance(screen, GridScreen):
                screen.tell(words, wrong=wrong)

    def tell_outcome(self, words: str, done: bool) -> None:
        """Show how a transaction ended."""
        self.tell(words, wrong=not done)

    # -- keys --------------------------------------------------------------------------------

    def action_leave_app(self) -> None:
        """Leave; ask first while a transaction is being sent."""
        self.leave(self.exit)

    def leave(self, go: Callable[[], object]) -> None:
        """Call `go`, after a question if a transaction is being sent."""
        if not self.in_flight:
            go()
            return
        if isinstance(self.screen, Question):
            return
        what = ", ".join(self.in_flight.values())
        question = f"Still being sent: {what}. If you leave, {LOOK_UP}. Leave? [y/N]"

        def answered(yes: bool | None) -> None:
            if yes:
                go()

        self.push_screen(Question(question), answered)

    def action_help_keys(self) -> None:
        if isinstance(self.screen, GridScreen):
            self.push_screen(KeysScreen(self.screen))

    def open_screen(self, name: str, job: AsyncJob | None = None) -> None:
        """Open a screen by its name. Some are about a job; the form of a submission may start from one."""
        from deepgrid.tui.screens.cluster_list import ClustersScreen  # the forms are loaded when one is opened
        from deepgrid.tui.screens.files_list import FilesScreen
        from deepgrid.tui.screens.job_details import JobScreen
        from deepgrid.tui.screens.job_log import LogScreen
        from deepgrid.tui.screens.money_forms import AllowanceForm, TopUpForm, TransferForm
        from deepgrid.tui.screens.submit_form import SubmitForm
        from deepgrid.tui.screens.sweeps import SweepsScreen

        if name == "submit":
            self.push_screen(SubmitForm(again=job))
        elif job is not None:
            self.push_screen({"log": LogScreen, "job": JobScreen, "files": FilesScreen, "top up": TopUpForm}[name](job))
        else:
            lists = {"clusters": ClustersScreen, "sweeps": SweepsScreen}
            self.push_screen({**lists, "transfer": TransferForm, "allowance": AllowanceForm}[name]())

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the commands of the palette: the keys of the screen that have a description."""
        for key, (_, binding, _, _) in screen.active_bindings.items():
            if binding.description and binding.action != "command_palette":
                run = partial(run_action, screen.focused or screen, binding.action)
                yield SystemCommand(binding.description.capitalize(), f"key {key}", run)

    # -- the end -----------------------------------------------------------------------------

    def _handle_exception(self, error: Exception) -> None:
        """End the app. Textual would print a traceback; the caller of `run` gets the error instead."""
        self.failure = getattr(error, "error", None) or error  # of a worker
        super()._handle_exception(error)
        self._exit_renderables.clear()


async def run_action(node: Any, action: str) -> None:
    """Run an action where it is defined: at the focused widget, its screen, or the app."""
    while node is not None and not await node.run_action(action):
        node = node.parent
