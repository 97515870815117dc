# shellcheck shell=sh
# Finds the Slurm jobs of a claim. POSIX sh, run on the login node; the scripts that use it follow after it.
#
# A job's account chooses the job's name and comment, and can put line ends into them. So ids are queried without any
# text, a comment is queried alone, and only digits count as an id.
LC_ALL=C
export LC_ALL

# ids: the lines of standard input that are ids, at most 20.
ids() { grep -m 20 -xE '[0-9]{1,10}'; }

# all_ids: as ids, but fails with a reason if there are more than 20, as the wanted id may be among the others.
all_ids() {
  few=$(grep -m 21 -xE '[0-9]{1,10}')
  if [ "$(printf '%s\n' "$few" | wc -l)" -gt 20 ]; then
    echo "more than 20 jobs of this account have the claim's name"
    return 1
  fi
  printf '%s\n' "$few"
}

# slurm COMMAND...: runs a command of Slurm and prints its answer. If it fails, prints its errors and then what else it
# said. The standard error of a command that works is no answer: wrappers of sites print news there.
slurm() {
  outcome=0
  { complained=$(timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" "$@" < /dev/null 2>&1 >&3 3>&-) || outcome=$?; } 3>&1
  [ "$outcome" -ne 0 ] || return 0
  printf '%s\n' "$complained" | grep -i error
  printf '%s\n' "$complained" | grep -vi error
  return "$outcome"
}

# queued_as UID NAMES COMMENT [OPTION...]: ids of the claim's jobs in the queue; with `-t all` also of jobs that ended a
# short while ago. Fails with Slurm's message if Slurm does not answer.
queued_as() {
  said_uid=$1 said_names=$2 said_comment=$3
  shift 3
  rows=$(slurm squeue -h -a -u "$said_uid" -n "$said_names" "$@" -o %A) || {
    printf '%s\n' "$rows" | head -n 1
    return 1
  }
  candidates=$(printf '%s\n' "$rows" | all_ids) || {
    printf '%s\n' "$candidates"
    return 1
  }
  for candidate in $candidates; do
    # The shell would drop line ends at the end of a comment. The bar keeps them.
    rows=$(slurm squeue -h -a -t all -j "$candidate" -o '%k|') || case $rows in
      *'Invalid job id'*) continue ;;
      *)
        printf '%s\n' "$rows" | head -n 1
        return 1
        ;;
    esac
    if [ "$rows" = "$said_comment|" ]; then echo "$candidate"; fi
  done
}
