"""Estimate pi with one job per seed. Kill this program at any time: started again, it continues with the same jobs."""

from deepgrid import Grid

WORKFLOW = """
enableLogging: true
resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 500, gpus: 0}
steps:
  - run:
      command: |
        awk -v seed="$SEED" -v points="$POINTS" 'BEGIN {
          srand(seed)
          for (n = 0; n < points; n++) inside += rand() ^ 2 + rand() ^ 2 < 1
          print 4 * inside / points
        }'
"""
PARAMETERS = [{"SEED": seed, "POINTS": 100_000} for seed in range(6)]

with Grid() as grid:
    sweep = grid.map(WORKFLOW, PARAMETERS, credits=100, at_once=3, key="pi-1", name="pi")
    for job in sweep.as_completed():
        print(f"job {job.id} {job.parameters}: {job.outcome}", flush=True)
    results = [next(job.logs(follow=True)).text for job in sweep.finished()]
    print(f"pi is about {sum(map(float, results)) / len(results):.4f}")
    print(sweep.summary())
