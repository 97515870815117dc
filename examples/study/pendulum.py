"""Find the damping of a pendulum: one job cleans the measurement, eight jobs try dampings, a plot shows the best."""

from pathlib import Path

import yaml
from matplotlib.figure import Figure

from deepgrid import Grid

HERE = Path(__file__).parent
DAMPINGS = [0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.14, 0.16]

with Grid() as grid:
    clean = grid.run(HERE / "clean.yaml", time="5m", send=[HERE / "swing.csv"], key="pendulum/clean")
    print(f"job {clean.id} cleaned the measurement")

    fit = yaml.safe_load((HERE / "fit.yaml").read_text())
    fit["input"] = {"job": clean.id}
    sweep = grid.map(fit, [{"DAMPING": one} for one in DAMPINGS], time="5m", key="pendulum/fit", name="fit").wait()
    errors: dict[float, float] = {}
    for job in sweep.finished():
        [result] = job.download("results")
        damping = float(result.stem.removeprefix("error-"))
        errors[damping] = float(result.read_text())
        print(f"job {job.id} tried {damping}: off by {errors[damping]:.4f}")
    print(sweep.summary())

best = min(errors, key=lambda damping: errors[damping])
print(f"the damping is {best}")

figure = Figure(figsize=(6, 3.5))
axes = figure.subplots()
axes.plot(DAMPINGS, [errors[one] for one in DAMPINGS], marker="o")
axes.set(xlabel="damping per second", ylabel="distance to the measurement", title="Damping of the pendulum")
figure.savefig("study.png", dpi=150, bbox_inches="tight")
