"""The one-machine grid: the whole grid on one machine, with real components."""
