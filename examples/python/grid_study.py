"""A study as a Prefect flow: ten steps and a hundred jobs. Needs `pip install . '.[prefect]'` in a checkout.

Kill it at any point and start it again with the same name: jobs that were submitted are found by their keys.
"""

import sys

from prefect import flow, task

from deepgrid.recipes.task_runner import GridTaskRunner

NAME = sys.argv[1] if sys.argv[1:] else "study"


@task
def measure(step: int, place: int) -> int:
    """One job. Its text and arguments travel to the node, its result comes back as JSON."""
    return step * 100 + place


@flow(task_runner=GridTaskRunner(credits=100, key=NAME), log_prints=True)
def study(steps: int = 10, places: int = 10) -> int:
    """Run the steps one after the other, and the jobs of a step at the same time."""
    total = 0
    for step in range(steps):
        results = measure.map(step, list(range(places))).result()
        total += sum(results)
        print(f"step {step} measured {sum(results)}")
    return total


if __name__ == "__main__":
    print(f"the total is {study(*map(int, sys.argv[2:]))}")
