# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with account.sh
# The supervisor's own batch jobs, which belong to no claim; POSIX sh, run on the login node.
# Arguments: VERB ROOT NAME ACCOUNT BECOME, then those of the verb. Answers one line, a word and its text; `output` the
# output. identity.sh, ledger.sh and account.sh stand
# before this.
#
# ROOT/batch/NAME belongs to the supervisor, and there is one job a name. Its folder there has a name that none had
# before, or the last words of a predecessor would land in its output. It can write output.log and run/ only.
set -u
verb=$1 root=$2 name=$3 home=$2/batch/$3 account=$4 become=$5
shift 5
know_account "$account" || answer refused "$complaint"

# end_all: cancel whatever Slurm has of this name.
end_all() {
  rows=$(timeout 20 squeue -h -a -u "$uid" -n "$name" -o %A < /dev/null 2>&1) ||
    answer later "$(printf '%s\n' "$rows" | head -n 1)"
  found=$(printf '%s\n' "$rows" | ids)
  # shellcheck disable=SC2086 # one argument an id
  [ -z "$found" ] || message=$(as_user timeout 20 scancel $found < /dev/null 2>&1) || answer later "$message"
}

# clear_out: no file is left. What is in run/ is the account's to remove.
clear_out() {
  for folder in "$home"/*/; do
    [ ! -d "$folder/run" ] || (cd / && as_user find "$folder/run/" -mindepth 1 -delete)
  done
  rm -rf "$home"
}

# submit SIZE SILENCE SBATCH...: a predecessor of this name ends; the script, SIZE bytes, is on standard input.
submit() {
  size=$1 silence=$2
  shift 2
  end_all
  clear_out
  # Others may pass through the folders, to the job's own files, and see nothing else.
  if ! { (umask 066 && mkdir -p "$home") && folder=$(mktemp -d "$home/XXXXXXXX") && chmod 711 "$folder" &&
    ln -sfn "${folder##*/}" "$home/current" && cat > "$folder/script"; }; then
    answer later "the login node could not write $home"
  fi
  [ "$(wc -c < "$folder/script")" -eq "$size" ] || answer later "the script did not arrive whole"
  lay_out || answer refused "$complaint"
  id=$(run_sbatch "$@" "--output=$folder/output.log" "--chdir=$folder/run" < "$folder/script" 2> "$folder/complaint")
  status=$?
  id=${id%%;*} # another cluster's name may follow
  case $id in
    '' | *[!0-9]*) ;;
    *)
      taken=$(taken_at "$id") || answer later "$taken"
      enter "$id" "batch-$name" "$uid" "${taken:--}" || answer later "the login node could not write $root/ledger"
      answer submitted "$id"
      ;;
  esac
  message=$(sed -n 's/^sbatch: //; s/^error: //; s/^fatal: //; /./{p;q}' "$folder/complaint")
  case $status in
    0 | 124 | 137) answer later "${message:-sbatch did not answer}" ;;
  esac
  ! grep -qE "connect failure|$silence" "$folder/complaint" || answer later "$message"
  answer refused "${message:-sbatch failed with status $status}"
}

# state ID: the word of Slurm for the job, LOST when neither the queue nor accounting has it.
state() {
  if rows=$(timeout 20 squeue -h -a -t all -u "$uid" -n "$name" -j "$1" -o %T < /dev/null 2>&1); then
    :
  else
    case $rows in
      *'Invalid job id'*) rows='' ;;
      *) answer later "$(printf '%s\n' "$rows" | head -n 1)" ;;
    esac
  fi
  [ -n "$rows" ] || rows=$(timeout 20 sacct -n -P -X -u "$uid" --name "$name" -j "$1" -o State < /dev/null 2>&1) ||
    case $rows in
      *'storage is disabled'*) rows='' ;;
      *) answer later "$(printf '%s\n' "$rows" | head -n 1)" ;;
    esac
  word=$(printf '%s\n' "$rows" | grep -oE '^[A-Z_]+' | head -n 1)
  answer state "${word:-LOST}"
}

# output LIMIT: the last LIMIT bytes of what the job wrote.
output() {
  tail -c "$1" "$home/current/output.log"
}

# remove: nothing of this name is left.
remove() {
  end_all
  clear_out
  answer removed
}

"$verb" "$@"
