"""Call a Python function on the grid, one job per item. The results come back as values, exceptions as errors."""

from deepgrid import Grid
from deepgrid.recipes import remote


def digits(number: int) -> int:
    """Return the number of digits of a factorial."""
    import math  # imports inside the function use the node's packages

    return len(str(math.factorial(number)))


with Grid() as grid:
    for call in remote.map(grid, digits, [10, 100, 1000, -1], credits=100, at_once=4):
        try:
            print(f"{call.item}! has {call.value()} digits")
        except remote.RemoteError as error:
            print(f"{call.item}! has no digits: {error}")
