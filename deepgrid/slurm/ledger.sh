# shellcheck shell=sh disable=SC2154 # root is set by what follows
# ROOT/ledger: which Slurm job belongs to which claim, a line "ID FOLDER UID" each, kept for good. Stands before the
# scripts that submit; POSIX sh, run on the login node.

# enter ID FOLDER UID: a controller that lost its state hands out ids again; the claim that had this one before has
# no job any more. 0 is no job's id, but a self-test's.
# shellcheck disable=SC2094 # it is appended to, under its lock
enter() {
  [ "$1" -gt 0 ] || return 0
  {
    flock -w 20 7 || return 1
    grep -E "^$1 " "$root/ledger" | while read -r _ former _; do
      [ "$former" = "$2" ] || [ ! -d "$root/jobs/$former" ] || : > "$root/jobs/$former/reissued"
    done
    printf '%s %s %s\n' "$1" "$2" "$3" >&7
  } 7>> "$root/ledger"
}
