"""The whole grid on one machine, with real parts."""
