# shellcheck shell=sh disable=SC2154 # root is set by what follows
# ROOT/ledger: which Slurm job belongs to which claim, a line "ID FOLDER UID UNTIL" each, kept for good; UNTIL is the
# unix second by which Slurm had it. Stands before the scripts that submit; POSIX sh, run on the login node.
CLOCKS_AGREE_WITHIN_S=2 # of the login node and of slurmctld

# had_by ID: when Slurm took this job, or else, where it does not say, the latest that this can have been.
had_by() {
  taken=$(SLURM_TIME_FORMAT=%s timeout 5 squeue -h -a -t all -j "$1" -o %V < /dev/null 2> /dev/null | head -n 1)
  case $taken in
    '' | *[!0-9]*) echo $(($(date +%s) + CLOCKS_AGREE_WITHIN_S)) ;;
    *) echo "$taken" ;;
  esac
}

# enter ID FOLDER UID UNTIL: a controller that lost its state hands out ids again; the claim that had this one before has
# no job any more. 0 is no job's id, but a self-test's.
# shellcheck disable=SC2094 # it is appended to, under its lock
enter() {
  [ "$1" -gt 0 ] || return 0
  {
    flock -w 20 7 || return 1
    grep -E "^$1 " "$root/ledger" | while read -r _ former _; do
      [ "$former" = "$2" ] || [ ! -d "$root/jobs/$former" ] || : > "$root/jobs/$former/reissued"
    done
    printf '%s %s %s %s\n' "$1" "$2" "$3" "$4" >&7
  } 7>> "$root/ledger"
}
