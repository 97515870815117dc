# shellcheck shell=sh disable=SC2015,SC2034,SC2154 # variables are shared with account.sh
# Ends jobs of customers' accounts that belong to no claim. POSIX sh, run on the login node; needs common.sh,
# as_user.sh and account.sh before it.
# Arguments: BECOME. Standard input: "ID UID", one job per line. Answers "ended ID" for each job that Slurm cancels, and
# `end` last.
set -u
become=$1
while read -r id uid; do
  user=$(getent passwd "$uid" | cut -d : -f 1)
  case $uid in '' | 0 | *[!0-9]*) continue ;; esac
  [ -n "$user" ] || continue
  # squeue lists the first job of an array or of a heterogeneous job with all its parts; scancel ends them together.
  timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" squeue -h -a -j "$id" -u "$uid" -o %A < /dev/null 2> /dev/null | grep -qxF -- "$id" || continue
  if (cd / && end_jobs "$id" > /dev/null 2>&1); then printf 'ended %s\n' "$id"; fi
done
echo end
