# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with account.sh
# The side effects on one claim's job, each under the lock of the job's folder; POSIX sh, run on the login node.
# Arguments: VERB ROOT FOLDER NAME COMMENT TERM, then those of the verb. Answers one line: a word and its text.
# TERM is "PROVIDER EPOCH" of a leader (see leader.sh), or empty. identity.sh, ledger.sh and account.sh stand before this.
#
# ROOT/jobs/FOLDER belongs to the supervisor. Its files: lock, account (name and id, before anything was tried), intent
# (when sbatch was first tried), id (and when Slurm took it, see ledger.sh), reissued (that id is another claim's by now), refused (sbatch said no), limit
# (minutes it was given), tombstone (must not run), record (of its runs). Jobs can write output.log and run/ only.
set -u
export SLURM_TIME_FORMAT=%s TZ=UTC
verb=$1 root=$2 folder=$2/jobs/$3 name=$4 comment=$5 term=$6
shift 6

# The three places that may know this claim's job. Each prints Slurm ids, or fails with a reason. Jobs of other accounts
# are not the claim's, whatever they are called; without an account nothing was submitted.
# queued [OPTION...]: those in the queue; with `-t all` also those that ended a short while ago.
queued() {
  [ -n "$uid" ] || return 0
  queued_as "$uid" "$name" "$comment" "$@"
}

# alive [OPTION...]: the id on record, if that job is in the queue and this account's, and what else squeue's options ask
# for; before there is one, those found by name. A job that Slurm took at another time has the id of one that
# Slurm lost, unless it was queued again since.
alive() {
  [ -s "$folder/id" ] || {
    queued
    return
  }
  [ ! -e "$folder/reissued" ] && read -r recorded taken < "$folder/id" || return 0
  rows=$(timeout 20 squeue -h -a -u "$uid" -j "$recorded" "$@" -O 'jobid:|,submittime:|,restartcnt:|' \
    < /dev/null 2>&1) || {
    case $rows in *'Invalid job id'*) return 0 ;; esac
    printf '%s\n' "$rows" | head -n 1
    return 1
  }
  while IFS='|' read -r found time restarts _; do
    [ "$found" = "$recorded" ] || continue
    case ${taken:--} in
      - | "$time") echo "$recorded" ;;
      *) if [ "$restarts" != 0 ] && [ "$time" -gt "$taken" ]; then echo "$recorded"; fi ;;
    esac
  done << ROWS
$rows
ROWS
}

records() {
  find "$root/spool" -maxdepth 1 -name '[0-9]*' -exec grep -lxF -e "comment=$comment" {} + 2> /dev/null |
    while read -r file; do
      if grep -qxF "user_id=$uid" "$file" && grep -qxF "name=$name" "$file"; then echo "$file"; fi
    done
}

accounted() {
  since=$(date -d "@$(($(cat "$folder/intent") - 86400))" +%FT%T)
  rows=$(timeout 20 sacct -n -P -X -a -D -u "$uid" --name "$name" -S "$since" -o JobIDRaw < /dev/null 2>&1) || {
    case $rows in *'storage is disabled'*) return 0 ;; esac
    printf '%s\n' "$rows" | head -n 1
    return 1
  }
  candidates=$(printf '%s\n' "$rows" | sort -u | all_ids) || {
    printf '%s\n' "$candidates"
    return 1
  }
  for candidate in $candidates; do
    comments=$(timeout 20 sacct -n -p -X -a -D -u "$uid" --name "$name" -j "$candidate" -S "$since" -o Comment \
      < /dev/null 2>&1) || {
      printf '%s\n' "$comments" | head -n 1
      return 1
    }
    # A bar ends each record. There are more lines than records if a comment holds line ends.
    [ "$(printf '%s\n' "$comments" | wc -l)" -eq "$(printf '%s\n' "$rows" | grep -cxF "$candidate")" ] || continue
    if printf '%s\n' "$comments" | grep -qxF -- "$comment|"; then echo "$candidate"; fi
  done
}

# find_job: the first id of an earlier attempt, if there is one.
find_job() {
  found=$(queued -t all) || answer later "$found"
  ls "$root/spool" > /dev/null 2>&1 || answer later "the login node cannot read $root/spool"
  [ -n "$found" ] || found=$(records | sed 's|.*/||; s|[.].*||')
  [ -n "$found" ] || found=$(accounted) || answer later "$found"
  found=$(printf '%s\n' "$found" | sort -n | head -n 1)
}

# choose_account ACCOUNT: goes on record before anything is tried, and is the claim's for good.
choose_account() {
  [ -z "$uid" ] || return 0
  know_account "$1" || refuse "$complaint"
  put account "$user $uid"
}

# submit PATIENCE_S SIZE SILENCE MINUTES ACCOUNT BECOME SBATCH...: at most one sbatch that Slurm accepted; the script,
# SIZE bytes, is on descriptor 8; SILENCE matches complaints that refuse nothing; MINUTES is the time limit that sbatch
# is asked for; ACCOUNT is had by BECOME, uid or sudo, and empty for the login's own.
submit() {
  patience=$1 silence=$3 minutes=$4 account=$5 become=$6
  shift 6
  [ ! -s "$folder/refused" ] || answer refused "$(cat "$folder/refused")"
  [ ! -e "$folder/tombstone" ] || answer tombstone
  if [ -s "$folder/id" ]; then
    read -r id _ < "$folder/id"
    answer adopted "$id"
  fi
  choose_account "$account"
  if [ -s "$folder/intent" ]; then
    find_job
    [ -z "$found" ] || adopt "$found"
    age=$(($(date +%s) - $(cat "$folder/intent")))
    [ "${age#-}" -ge "$patience" ] || # another login node's clock may be some seconds behind
      answer later "an attempt made $age s ago may still reach Slurm"
  fi
  lay_out || refuse "$complaint"
  echo "$minutes" > "$folder/limit"
  put intent "$(date +%s)"
  id=$(run_sbatch "$@" <&8 2> "$folder/complaint")
  status=$?
  id=${id%%;*} # another cluster's name may follow
  case $id in
    '' | *[!0-9]*) complain "$status" ;;
  esac
  # In an account that is not ours the id goes on record in any case: the job may have taken another name already. In
  # ours, Slurm must still know it by its name, or the id may be another job's by now.
  if ! taken=$(taken_at "$id"); then
    [ "$uid" != "$(id -u)" ] || answer later "$taken"
    taken=''
  fi
  [ -n "$taken" ] || [ "$uid" != "$(id -u)" ] || answer later "Slurm took the job, and has none of this name by now"
  own "$id" submitted "${taken:--}"
}

# adopt ID: what an earlier attempt submitted, and may be over and forgotten.
adopt() {
  taken=$(taken_at "$1") || answer later "$taken"
  own "$1" adopted "${taken:--}"
}

# own ID ANSWER TAKEN: Slurm's job of this id is the claim's, and Slurm took it then.
own() {
  enter "$1" "${folder##*/}" "$uid" "$3" || answer later "the login node could not write $root/ledger"
  put id "$1 $3"
  answer "$2" "$1"
}

# complain STATUS: sbatch gave no id. Its refusals are final and leave no way to start; anything else is looked into later.
complain() {
  message=$(sed -n 's/^sbatch: //; s/^error: //; s/^fatal: //; /./{p;q}' "$folder/complaint")
  case $1 in
    0 | 124 | 137) answer later "${message:-sbatch did not answer}" ;;
  esac
  if grep -q 'connect failure' "$folder/complaint"; then
    rm -f "$folder/intent" # nobody heard it: the next attempt need not wait
    answer later "$message"
  fi
  ! grep -qE "$silence" "$folder/complaint" || answer later "$message"
  refuse "${message:-sbatch failed with status $1}"
}

# refuse REASON: for good.
refuse() {
  put tombstone "$(date +%s)"
  put refused "$1"
  answer refused "$1"
}

# tombstone: nothing of this claim starts from now on, and what waits or runs is cancelled.
tombstone() {
  [ -e "$folder/tombstone" ] || put tombstone "$(date +%s)"
  found=$(alive) || answer later "$found"
  # shellcheck disable=SC2086 # one argument an id
  [ -z "$found" ] || message=$(as_user timeout 20 scancel $found < /dev/null 2>&1) || answer later "$message"
  answer cancelled
}

# limit MINUTES: the job's time limit, counted from its start, unless it was given that much before: who asks late must
# not take back what was given meanwhile. A job that is gone needs none.
limit() {
  [ ! -s "$folder/limit" ] || [ "$(cat "$folder/limit")" -lt "$1" ] || answer set
  found=$(alive) || answer later "$found"
  [ -n "$found" ] || answer absent
  found=$(alive -n "$name") || answer later "$found"
  [ -n "$found" ] || answer refused "the job has another name by now"
  for id in $found; do
    message=$(timeout 20 scontrol update "JobId=$id" "TimeLimit=$1" < /dev/null 2>&1) || case $message in
      *'already completi'* | *'already completed'* | *'already finished'* | *'Invalid job id'*) answer absent ;;
      *denied* | *'not permitted'* | *'Invalid user id'*) answer refused "$message" ;;
      *) answer later "$message" ;;
    esac
  done
  put limit "$1"
  answer set
}

# only_the_leader: who leads a provider and was replaced is told so. Looked at under the claim's lock: what a former
# leader began before that is done when the next one gets the lock, and is found. Who never led is bound by the lock.
only_the_leader() {
  [ -n "$term" ] || return 0
  read -r epoch < "$root/leaders/${term% *}/epoch" || answer later "the login node could not read who leads"
  [ "$epoch" = "${term#* }" ] || answer deposed
}

# Others may pass through the folders, to a job's own files, and see nothing else.
[ -d "$folder" ] || (umask 066 && mkdir -p "$folder") || answer later "the login node could not make $folder"
if [ "$verb" = submit ]; then
  # A connection that broke while the script came must not submit half of it.
  script=$folder/script.$$
  if ! cat > "$script"; then
    rm -f "$script"
    answer later "the login node could not write $script"
  fi
  if [ "$(wc -c < "$script")" -ne "$2" ]; then
    rm -f "$script"
    answer later "the script did not arrive whole"
  fi
  exec 8< "$script"
  rm -f "$script"
fi
exec 9> "$folder/lock"
flock -w 20 9 || answer later "another attempt holds the lock"
[ ! -s "$folder/account" ] || read -r user uid < "$folder/account"
only_the_leader
"$verb" "$@"
