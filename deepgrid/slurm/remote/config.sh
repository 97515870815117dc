# shellcheck shell=sh disable=SC2154 # the script after this sets config
# Reads Slurm's configuration for the scripts that follow after this. POSIX sh, run on the login node.

# setting NAME: its value in $config, the output of `scontrol show config`; empty if it is unset. Slurm prints (null) for
# unset names, and newer versions do so for more of them.
setting() { printf '%s\n' "$config" | sed -n "/= (null) *\$/d; s/^$1 *= *//p" | head -n 1; }
