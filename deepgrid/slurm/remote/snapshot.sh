# shellcheck shell=sh
# A snapshot of all watched jobs. POSIX sh, run on the login node; needs identity.sh before it. Changes nothing.
# Arguments: ROOT, then the squeue command. Standard input: "FOLDER COMMENT", one watched job per line.
# Answers lines of words, with texts in base64, and `end` last: without it the answer was cut off.
set -u
export SLURM_TIME_FORMAT=%s
root=$1
shift
watched=$(cat)
IN_DOUBT_S=5 # a younger intent may still get its answer from sbatch

# ids_of_all: the lines of standard input that are ids.
ids_of_all() { grep -xE '[0-9]{1,10}'; }

# facts: a line "job COMMENT ID TAKEN STATE UID TICKET FOLDER" for each claim of standard input. STATE is submitted,
# refused, or reissued if another claim has the id by now. TICKET is inode and time of run/unstarted as it was made.
facts() {
  while read -r folder comment; do
    place=$root/jobs/$folder id='' taken='' state=submitted uid='' ticket=''
    if [ -s "$place/account" ]; then read -r _ uid < "$place/account"; fi
    if [ -s "$place/id" ]; then
      read -r id taken < "$place/id"
    elif [ -s "$place/intent" ] && [ -n "$uid" ]; then
      id=$(in_doubt "$place" "$folder" "$comment" "$uid")
    fi
    if [ -s "$place/refused" ]; then state=refused; fi
    if [ -e "$place/reissued" ]; then state=reissued; fi
    if [ -s "$place/ticket" ]; then read -r ticket < "$place/ticket"; fi
    [ -d "$place" ] || uid=gone
    printf 'job %s %s %s %s %s %s %s\n' "$comment" "${id:--}" "${taken:--}" "$state" "${uid:--}" "${ticket:--}" "$folder"
  done
}

# in_doubt PLACE FOLDER COMMENT UID: the id of a job whose sbatch never answered. The next submission records it.
in_doubt() {
  [ ! -s "$1/refused" ] || return 0
  age=$(($(date +%s) - $(cat "$1/intent")))
  [ "${age#-}" -ge "$IN_DOUBT_S" ] || return 0
  number=${2%-*} number=${number##*-}
  found=$(queued_as "$4" "dg-$number,$(printf '0x%064x' "$number")" "$3") || return 0 # as in JobKey.names
  printf '%s\n' "$found" | head -n 1
}

# Times in queue and spool are by the cluster's clocks, so the answer contains their time.
printf 'clock %s\n' "$(date +%s)"
# Read the queue before the spool: a job that leaves the queue in between is in the spool.
rows=$(slurm "$@")
status=$?
claims=$(printf '%s\n' "$watched" | facts)
if [ "$status" -eq 0 ]; then
  echo "held $(printf '%s\n' "$rows" | grep -c .)"
  # Keep only the rows of the wanted ids, out of all jobs of the site.
  rows=$({
    printf '%s\n' "$claims" | cut -d ' ' -f 3 | ids_of_all
    printf '%s\n' "$rows"
  } | awk -F '|' 'NF == 1 { wanted[$1]; next } $1 in wanted')
fi
printf 'queue %s %s\n' "$status" "$(printf '%s\n' "$rows" | base64 -w0)"

if [ -n "$watched" ]; then
  if ! ls "$root/spool" > /dev/null 2>&1 || ! [ -x "$root/jobs" ]; then echo unread; fi
  # No temporary file: a job may fill /tmp. Names of records have neither a colon nor a space.
  printf 'spool %s\n' "$({
    printf '%s\n' "$watched" | sed 's/^[^ ]* /:comment=/'
    find "$root/spool" -maxdepth 1 -name '[0-9]*' -exec grep -Hx 'comment=.*' {} + 2> /dev/null
  } | awk '{ name = $0; sub(/:.*/, "", name); text = substr($0, length(name) + 1) }
    name == "" { wanted[text]; next } text in wanted { print name }' |
    while read -r file; do cat "$file"; echo; done | base64 -w0)"
  # One process reads the marks of all claims, as this runs each second with many claims. It asks a network file system
  # for their present state, where it can. It opens no file: a job may put a FIFO there.
  # shellcheck disable=SC2016 # the other shell expands it
  marks=$(printf '%s\n' "$watched" | while read -r folder _; do
    echo "$root/jobs/$folder/run/unstarted $root/jobs/$folder/tombstone"
  done | xargs sh -c 'now=--cached=never; stat $now / > /dev/null || now=""; exec stat $now -c "%i:%.9Z %n" "$@"' sh \
    2> /dev/null)
  printf 'marks %s\n' "$(printf '%s\n' "$marks" | base64 -w0)"
  printf '%s\n' "$claims" | grep . | while read -r line; do
    folder=${line##* }
    printf '%s\n' "$line"
    if [ -s "$root/jobs/$folder/record" ]; then printf 'record %s\n' "$(base64 -w0 "$root/jobs/$folder/record")"; fi
  done
fi
echo end
