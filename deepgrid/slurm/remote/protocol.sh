# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with account.sh
# The side effects on one claim's job, each under the lock of the job's folder. POSIX sh, run on the login node; needs
# common.sh, identity.sh, ledger.sh, as_user.sh, account.sh, complaint.sh and submissions.sh before it.
# Arguments: VERB ROOT FOLDER NAMES COMMENT TERM, then the verb's own. Answers one line: a word and its text. NAMES
# are the names that the claim's job can have, with commas between them.
# Or: submissions ROOT TERM, then the arguments of `submissions`, which submits several claims.
# TERM is "PROVIDER EPOCH" of a leader (see leader.sh), or empty.
#
# ROOT/jobs/FOLDER belongs to the supervisor. Jobs can write only output.log and run/ in it. Other files:
# * lock: taken for each verb
# * account: name and id of the Unix account, written before the first attempt
# * intent: when sbatch was last tried
# * id: the Slurm id, and when Slurm accepted the job (see ledger.sh)
# * reissued: the id belongs to another claim now
# * refused: sbatch refused the job
# * limit: the job's time limit in minutes
# * ticket: which file run/unstarted is (see account.sh); as long as it is there, nothing ran
# * spare: becomes the tombstone, even when the disk is full
# * tombstone: the job must not run
# * record: completion records of the job's runs
set -u
export SLURM_TIME_FORMAT=%s TZ=UTC
verb=$1 root=$2 unrecorded=''
shift 2

# The next functions ask the queue, the spool and accounting for this claim's job. Each prints Slurm ids (records: file
# names), or fails with a reason. Jobs of other accounts never count, whatever their name. Without an account on record
# nothing was submitted.
# queued [OPTION...]: jobs in the queue; with `-t all` also jobs that ended a short while ago.
queued() {
  [ -n "$uid" ] || return 0
  queued_as "$uid" "$names" "$comment" "$@"
}

# alive [OPTION...]: the id on record, if the queue has that job under this account and squeue's options match. Without
# an id on record: the ids found by name. If Slurm accepted the job at another time, the id belongs to another job, and
# Slurm lost ours, unless the job was requeued since.
alive() {
  [ -s "$folder/id" ] || {
    queued
    return
  }
  [ ! -e "$folder/reissued" ] && read -r recorded taken < "$folder/id" || return 0
  rows=$(slurm squeue -h -a -u "$uid" -j "$recorded" "$@" -O 'jobid:|,submittime:|,restartcnt:|') || {
    case $rows in *'Invalid job id'*) return 0 ;; esac
    printf '%s\n' "$rows" | head -n 1
    return 1
  }
  printf '%s\n' "$rows" | while IFS='|' read -r found time restarts _; do
    [ "$found" = "$recorded" ] || continue
    case ${taken:--} in
      - | "$time") echo "$recorded" ;;
      *) if [ "$restarts" != 0 ] && [ "$time" -gt "$taken" ]; then echo "$recorded"; fi ;;
    esac
  done
}

records() {
  lines=$(printf '%s\n' "$names" | tr , '\n' | sed 's/^/name=/')
  find "$root/spool" -maxdepth 1 -name '[0-9]*' -exec grep -lxF -e "comment=$comment" {} + 2> /dev/null |
    while read -r file; do
      if grep -qxF "user_id=$uid" "$file" && grep -qxF -e "$lines" "$file"; then echo "$file"; fi
    done
}

accounted() {
  since=$(date -d "@$(($(cat "$folder/intent") - 86400))" +%FT%T)
  rows=$(slurm sacct -n -P -X -a -D -u "$uid" --name "$names" -S "$since" -o JobIDRaw) || {
    case $rows in *'storage is disabled'*) return 0 ;; esac
    printf '%s\n' "$rows" | head -n 1
    return 1
  }
  candidates=$(printf '%s\n' "$rows" | sort -u | all_ids) || {
    printf '%s\n' "$candidates"
    return 1
  }
  for candidate in $candidates; do
    comments=$(slurm sacct -n -p -X -a -D -u "$uid" --name "$names" -j "$candidate" -S "$since" -o Comment) || {
      printf '%s\n' "$comments" | head -n 1
      return 1
    }
    # A bar ends each record. There are more lines than records if a comment holds line ends.
    [ "$(printf '%s\n' "$comments" | wc -l)" -eq "$(printf '%s\n' "$rows" | grep -cxF "$candidate")" ] || continue
    if printf '%s\n' "$comments" | grep -qxF -- "$comment|"; then echo "$candidate"; fi
  done
}

# find_job: sets found to the first id of an earlier attempt, or to nothing.
find_job() {
  found=$(queued -t all) || answer later "$found"
  ls "$root/spool" > /dev/null 2>&1 || answer later "the login node cannot read $root/spool"
  [ -n "$found" ] || found=$(records | sed 's|.*/||; s|[.].*||')
  [ -n "$found" ] || found=$(accounted) || answer later "$found"
  found=$(printf '%s\n' "$found" | sort -n | head -n 1)
}

# choose_account: chooses the claim's account, which is recorded before the first attempt and never changes afterwards.
# What the account makes itself must find the record.
choose_account() {
  [ -z "$uid" ] || return 0
  [ -z "$no_account" ] || refuse "$no_account"
  user=$account_user uid=$account_uid
  case $me in
    0 | "$uid") unrecorded=yes ;;
    *) put account "$user $uid" ;;
  esac
}

# submit MINUTES SBATCH...: submits the script on descriptor 8 so that Slurm accepts it at most once. MINUTES is the time
# limit in the options of sbatch. The other values come from `submissions`.
submit() {
  minutes=$1
  shift
  [ ! -s "$folder/refused" ] || answer refused "$(cat "$folder/refused")"
  [ ! -e "$folder/tombstone" ] || answer tombstone
  if [ -s "$folder/id" ]; then
    read -r id _ < "$folder/id"
    answer adopted "$id"
  fi
  choose_account
  if [ -s "$folder/intent" ]; then
    find_job
    [ -z "$found" ] || adopt "$found"
    age=$(($(date +%s) - $(cat "$folder/intent")))
    [ "${age#-}" -ge "$patience" ] || # the age is negative if another login node's clock is ahead
      answer later "an attempt made $age s ago may still reach Slurm"
  fi
  lay_out || refuse "$complaint"
  if ! { echo "$minutes" > "$folder/limit" && true > "$folder/spare" && reserve_record; }; then
    answer later "the login node could not write $folder or $root/spool"
  fi
  put ${unrecorded:+account "$user $uid"} ${ticket:+ticket "$ticket"} intent "$(date +%s)"
  said=$(run_sbatch "$@" <&8)
  status=$?
  job_id "$said"
  [ -n "$id" ] || complain "$status"
  # For another account than ours, the id is recorded in any case: the job may have changed its name already. For our own
  # account, Slurm must still know the job by its name. Otherwise the id may belong to another job by now.
  taken_at "$id" || [ "$uid" != "$me" ] || answer later "$said"
  [ -n "$taken" ] || [ "$uid" != "$me" ] || answer later "Slurm accepted the job, but has no job of this name now"
  own "$id" submitted "${taken:--}"
}

# reserve_record: makes the file that the completion hook uses if the disk is full when the job ends.
reserve_record() {
  kept=$root/spool/.reserve.$comment
  [ -d "$root/spool" ] && [ ! -e "$kept" ] || return 0
  blank='
'
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do blank=$blank$blank; done
  umask 0
  printf %s "$blank" > "$kept.new" && mv "$kept.new" "$kept"
  set -- $?
  umask 077
  return "$1"
}

# adopt ID: records the job of an earlier attempt. Slurm may have forgotten it already.
adopt() {
  taken_at "$1" || answer later "$said"
  own "$1" adopted "${taken:--}"
}

# own ID ANSWER TAKEN: records that the job with this id, which Slurm accepted at TAKEN, belongs to the claim.
own() {
  enter "$1" "${folder##*/}" "$uid" "$3" || answer later "the login node could not write $root/ledger"
  put id "$1 $3"
  answer "$2" "$1"
}

# complain STATUS: handles an sbatch without an id. A refusal is final, and the job can never start. After an outage a
# later attempt looks for the job. At a limit, and if the request did not reach Slurm, the next attempt need not wait.
complain() {
  read_complaint "$1"
  case $kind/$message in limit/* | *'connect failure'*) rm -f "$folder/intent" ;; esac
  case $kind in
    limit) answer limited "$message" ;;
    outage) answer later "$message" ;;
  esac
  refuse "$message"
}

# refuse REASON: refuses the claim for good.
refuse() {
  put ${unrecorded:+account "$user $uid"} tombstone "$(date +%s)" refused "$1"
  rm -f "$root/spool/.reserve.$comment"
  answer refused "$1"
}

# tombstone BECOME: bars all later starts of this claim, and cancels its waiting or running job. The cancellation reaches
# Slurm also if nothing can be written.
tombstone() {
  become=$1 barred=''
  if [ -e "$folder/tombstone" ] || { mv -T "$folder/spare" "$folder/tombstone" && sync "$folder"; } 2> /dev/null ||
    { date +%s > "$folder/tombstone" && { sync "$folder/tombstone" "$folder" || true; }; } 2> /dev/null; then
    barred=yes
  fi
  found=$(alive) || answer later "$found"
  # shellcheck disable=SC2086 # one argument per id
  [ -z "$found" ] || end_jobs $found || answer later "$said"
  [ -n "$barred" ] || answer later "the job was cancelled, but the login node could not write $folder/tombstone"
  answer cancelled
}

# limit MINUTES OUTAGES: sets the job's time limit, counted from its start. A limit that is not longer than the present one
# changes nothing, so a late request cannot undo an extension. A job that is gone needs no limit.
limit() {
  outages=$2
  [ ! -s "$folder/limit" ] || [ "$(cat "$folder/limit")" -lt "$1" ] || answer set
  found=$(alive) || answer later "$found"
  [ -n "$found" ] || answer absent
  found=$(alive -n "$names") || answer later "$found"
  [ -n "$found" ] || answer refused "the job has another name now"
  for id in $found; do
    message=$(slurm scontrol update "JobId=$id" "TimeLimit=$1") || case $message in
      *'already completi'* | *'already completed'* | *'already finished'* | *'Invalid job id'*) answer absent ;;
      '') answer later 'scontrol did not answer' ;;
      *)
        ! printf '%s\n' "$message" | grep -qE "$outages" || answer later "$message"
        answer refused "$message"
        ;;
    esac
  done
  # A full disk has room for this, as the file is there and becomes no shorter.
  (put limit "$1") > /dev/null
  [ "$(cat "$folder/limit")" = "$1" ] || printf '%s\n' "$1" | dd "of=$folder/limit" conv=notrunc status=none ||
    answer later "the login node could not write $folder/limit"
  answer set
}

# only_the_leader: refuses a leader that was replaced. This check needs the claim's lock: an effect that a former leader
# began before has ended when the next leader gets the lock, which then finds it. For a caller that never led, the lock
# is enough.
only_the_leader() {
  [ -n "$term" ] || return 0
  read -r epoch < "$root/leaders/${term% *}/epoch" || answer later "the login node could not read who leads"
  [ "$epoch" = "${term#* }" ] || answer deposed
}

# under_lock VERB ARGUMENT...: runs a verb under the claim's lock. Other accounts can pass through the folders to a job's
# own files, and see nothing else.
under_lock() {
  exec 9> "$folder/lock"
  flock -w 20 9 || answer later "another attempt holds the lock"
  [ ! -s "$folder/account" ] || read -r user uid < "$folder/account"
  only_the_leader
  "$@"
}

case $verb in
  submissions)
    term=$1
    shift
    submissions "$@"
    ;;
  *)
    folder=$root/jobs/$1 names=$2 comment=$3 term=$4
    shift 4
    make_folder || answer later "the login node could not make $folder"
    under_lock "$verb" "$@"
    ;;
esac
