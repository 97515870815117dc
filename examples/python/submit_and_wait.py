"""Submit a job, print why it waits, and end with its exit status. Needs a key and an address book, as `dps` does."""

from deepgrid import Grid

with Grid() as grid:
    job = grid.submit("hello-world.yaml", credits=100)
    print(f"job {job.id} {job.waits_for}")
    job.wait(timeout="2h")
    for line in job.logs(follow=True):
        print(line.text)
    job.check()
    print(job.outcome)
