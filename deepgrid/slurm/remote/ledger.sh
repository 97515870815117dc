# shellcheck shell=sh disable=SC2034,SC2154 # the script after this sets root, names and uid, and reads taken
# ROOT/ledger maps each Slurm job to its claim, with one line "ID FOLDER UID TAKEN" per job, and is never cleared. TAKEN
# is the unix second at which Slurm accepted the job, or - if unknown. POSIX sh, run on the login node; the scripts that
# submit follow after it.

# taken_at ID: sets taken to the time when Slurm accepted the job with this id and one of the names, or to nothing if
# Slurm does not know it. Fails with Slurm's message in said. The name matters: a controller that lost its state may
# have given the id to another job.
taken_at() {
  taken=''
  [ "$1" -gt 0 ] || { # id 0 is a self-test
    taken=$(date +%s)
    return
  }
  said=$(SLURM_TIME_FORMAT=%s slurm squeue -h -a -t all -u "$uid" -n "$names" -j "$1" -o %V) ||
    case $said in
      *'Invalid job id'*) said='' ;;
      *) return 1 ;;
    esac
  case $said in *[!0-9]*) ;; *) taken=$said ;; esac # not a time: count it as unknown
}

# enter ID FOLDER UID TAKEN: adds a line to the ledger. A controller that lost its state reuses ids; then the claim that
# had this id before has no job any more, and is marked as reissued. Id 0 is a self-test and is not entered.
# shellcheck disable=SC2094 # it appends to the file under its lock
enter() {
  [ "$1" -gt 0 ] || return 0
  {
    flock -w 20 7 || return 1
    earlier=$(grep -E "^$1 " "$root/ledger") || earlier=''
    [ -z "$earlier" ] || printf '%s\n' "$earlier" | while read -r _ former _; do
      [ "$former" = "$2" ] || [ ! -d "$root/jobs/$former" ] || true > "$root/jobs/$former/reissued"
    done
    printf '%s %s %s %s\n' "$1" "$2" "$3" "$4" >&7
  } 7>> "$root/ledger"
}
