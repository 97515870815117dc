# shellcheck shell=sh
# Which Slurm jobs are a claim's: stands before the scripts that ask. POSIX sh, run on the login node.
#
# A job's account chooses its name and comment, line ends included. So ids are printed without any text, a comment is
# printed without anything else, and only digits are taken for an id.
LC_ALL=C
export LC_ALL

# ids: standard input's lines that are ids, a few at most.
ids() { grep -m 20 -xE '[0-9]{1,10}'; }

# all_ids: the same if there are few; else fails with a reason, as the one that is wanted may be among the others.
all_ids() {
  few=$(grep -m 21 -xE '[0-9]{1,10}')
  if [ "$(printf '%s\n' "$few" | wc -l)" -gt 20 ]; then
    echo "more than 20 jobs of this account have the claim's name"
    return 1
  fi
  printf '%s\n' "$few"
}

# queued_as UID NAME COMMENT [OPTION...]: ids of the claim's jobs in the queue; with `-t all` also of those that ended a
# short while ago. Fails with Slurm's reason when it does not answer.
queued_as() {
  said_uid=$1 said_name=$2 said_comment=$3
  shift 3
  rows=$(timeout 20 squeue -h -a -u "$said_uid" -n "$said_name" "$@" -o %A < /dev/null 2>&1) || {
    printf '%s\n' "$rows" | head -n 1
    return 1
  }
  candidates=$(printf '%s\n' "$rows" | all_ids) || {
    printf '%s\n' "$candidates"
    return 1
  }
  for candidate in $candidates; do
    # The bar keeps line ends at a comment's end, which the shell would cut off.
    rows=$(timeout 20 squeue -h -a -t all -j "$candidate" -o '%k|' < /dev/null 2>&1) || case $rows in
      *'Invalid job id'*) continue ;;
      *)
        printf '%s\n' "$rows" | head -n 1
        return 1
        ;;
    esac
    if [ "$rows" = "$said_comment|" ]; then echo "$candidate"; fi
  done
}
