# shellcheck shell=sh disable=SC2154 # root, name and uid are set by what follows
# ROOT/ledger: which Slurm job belongs to which claim, a line "ID FOLDER UID TAKEN" each, kept for good. TAKEN is the
# unix second at which Slurm took the job, or - if unknown. Stands before the scripts that submit; POSIX sh, run on the
# login node.

# taken_at ID: when Slurm took the job of this id and name; nothing if it knows none. Fails with Slurm's reason. The name
# matters: a controller that lost its state may have given the id to another job.
taken_at() {
  [ "$1" -gt 0 ] || { # a self-test's
    date +%s
    return
  }
  said=$(SLURM_TIME_FORMAT=%s timeout 20 squeue -h -a -t all -u "$uid" -n "$name" -j "$1" -o %V < /dev/null 2>&1) ||
    case $said in
      *'Invalid job id'*) said='' ;;
      *)
        printf '%s\n' "$said"
        return 1
        ;;
    esac
  case $said in *[!0-9]*) said='' ;; esac # no time, which is as good as none known
  printf '%s\n' "$said"
}

# enter ID FOLDER UID TAKEN: a controller that lost its state hands out ids again; the claim that had this one before has
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
