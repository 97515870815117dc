# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with account.sh
# The supervisor's own batch jobs, which belong to no claim. POSIX sh, run on the login node; needs common.sh,
# identity.sh, ledger.sh, as_user.sh, account.sh and complaint.sh before it.
# Arguments: VERB ROOT NAME ACCOUNT BECOME, then the verb's own. Answers one line, a word and its text. The verb
# `output` answers the output itself.
#
# ROOT/batch/NAME belongs to the supervisor. There is one job per name. Each job gets a new folder in it, so that the
# last lines of an earlier job cannot appear in its output. The job can write only output.log and run/.
set -u
verb=$1 root=$2 name=$3 names=$3 home=$2/batch/$3 account=$4 become=$5
shift 5
know_account "$account" || answer refused "$complaint"

# end_all: cancels all jobs of this name.
end_all() {
  rows=$(slurm squeue -h -a -u "$uid" -n "$name" -o %A) ||
    answer later "$(printf '%s\n' "$rows" | head -n 1)"
  found=$(printf '%s\n' "$rows" | ids)
  # shellcheck disable=SC2086 # one argument per id
  [ -z "$found" ] || end_jobs $found || answer later "$said"
}

# clear_out: removes all files. The account itself removes the content of run/.
clear_out() {
  for folder in "$home"/*/; do
    [ ! -d "$folder/run" ] || (cd / && as_user 60 find "$folder/run/" -mindepth 1 -delete < /dev/null)
  done
  rm -rf "$home"
}

# submit SIZE OUTAGES LIMITS SBATCH...: ends an earlier job of this name and submits the script of SIZE bytes on
# standard input. OUTAGES and LIMITS match messages that refuse nothing (see complaint.sh).
submit() {
  size=$1 outages=$2 limits=$3
  shift 3
  end_all
  clear_out
  # Other accounts can pass through the folders to the job's own files, and see nothing else.
  if ! { (umask 066 && mkdir -p "$home") && folder=$(mktemp -d "$home/XXXXXXXX") && chmod 711 "$folder" &&
    ln -sfn "${folder##*/}" "$home/current" && cat > "$folder/script"; }; then
    answer later "the login node could not write $home"
  fi
  [ "$(wc -c < "$folder/script")" -eq "$size" ] || answer later "the script was cut off on its way"
  lay_out || answer refused "$complaint"
  [ -z "$ticket" ] || put ticket "$ticket"
  said=$(run_sbatch "$@" "--output=$folder/output.log" "--chdir=$folder/run" < "$folder/script")
  status=$?
  job_id "$said"
  if [ -n "$id" ]; then
    taken_at "$id" || answer later "$said"
    enter "$id" "batch-$name" "$uid" "${taken:--}" || answer later "the login node could not write $root/ledger"
    answer submitted "$id"
  fi
  read_complaint "$status"
  case $kind in
    limit) answer limited "$message" ;;
    outage) answer later "$message" ;;
  esac
  answer refused "$message"
}

# state ID: the job's state in Slurm, LOST if neither the queue nor accounting has the job.
state() {
  if rows=$(slurm squeue -h -a -t all -u "$uid" -n "$name" -j "$1" -o %T); then
    :
  else
    case $rows in
      *'Invalid job id'*) rows='' ;;
      *) answer later "$(printf '%s\n' "$rows" | head -n 1)" ;;
    esac
  fi
  [ -n "$rows" ] || rows=$(slurm sacct -n -P -X -u "$uid" --name "$name" -j "$1" -o State) ||
    case $rows in
      *'storage is disabled'*) rows='' ;;
      *) answer later "$(printf '%s\n' "$rows" | head -n 1)" ;;
    esac
  word=$(printf '%s\n' "$rows" | grep -oE '^[A-Z_]+' | head -n 1)
  answer state "${word:-LOST}"
}

# output LIMIT: the last LIMIT bytes of the job's output.
output() {
  tail -c "$1" "$home/current/output.log"
}

# remove: ends the job of this name and removes its files.
remove() {
  end_all
  clear_out
  answer removed
}

"$verb" "$@"
