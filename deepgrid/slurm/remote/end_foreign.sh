# shellcheck shell=sh disable=SC2015,SC2034,SC2154 # variables are shared with account.sh
# Ends jobs of customers' accounts that belong to no claim; POSIX sh, run on the login node.
# Arguments: BECOME; standard input: "ID UID", a job a line. Answers "ended ID" for each that Slurm took, and `end`.
# account.sh stands before this. Each job is ended with the rights of its own account only.
set -u
become=$1
while read -r id uid; do
  user=$(getent passwd "$uid" | cut -d : -f 1)
  [ -n "$user" ] && [ "$uid" -ne 0 ] || continue
  # The first of an array or of a heterogeneous job is listed with all others, and ended with them.
  timeout 20 squeue -h -a -j "$id" -u "$uid" -o %A < /dev/null 2> /dev/null | grep -qxF -- "$id" || continue
  if (cd / && as_user timeout 20 scancel "$id" < /dev/null > /dev/null 2>&1); then printf 'ended %s\n' "$id"; fi
done
echo end
