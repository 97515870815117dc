# shellcheck shell=sh
# One look at all watched jobs; POSIX sh, run on the login node. Changes nothing.
# Arguments: ROOT, then the squeue command; standard input: "FOLDER COMMENT", one watched job a line.
# Answers lines of words, texts in base64, and `end` last, so that half an answer is told from a whole one.
set -u
export LC_ALL=C SLURM_TIME_FORMAT=%s
root=$1
shift
watched=$(cat)

# Times in queue and spool are by this cluster's clocks, whatever the asker's says.
printf 'clock %s\n' "$(date +%s)"
# The queue before the spool: a job that leaves the one between the two looks is in the other.
rows=$(timeout 20 "$@" < /dev/null 2>&1)
status=$?
[ "$status" -ne 0 ] || rows=$(printf '%s\n' "$rows" | grep -F '|deepgrid:')
printf 'queue %s %s\n' "$status" "$(printf '%s\n' "$rows" | base64 -w0)"

if [ -n "$watched" ]; then
  # A disk that takes no list of comments would make the spool look empty, and so would one that is away.
  comments=$(mktemp) || exit 1
  if ! printf '%s\n' "$watched" | sed 's/^[^ ]* /comment=/' > "$comments"; then
    rm -f "$comments"
    exit 1
  fi
  if ! ls "$root/spool" > /dev/null 2>&1 || ! [ -x "$root/jobs" ]; then echo unread; fi
  printf 'spool %s\n' "$(find "$root/spool" -maxdepth 1 -name '[0-9]*' \
    -exec grep -lxF -f "$comments" {} + 2> /dev/null | while read -r file; do cat "$file"; echo; done | base64 -w0)"
  rm -f "$comments"
  # When they changed last, of all claims by one process: this is done each second, for as many as there are.
  marks=$(printf '%s\n' "$watched" | while read -r folder _; do
    echo "$root/jobs/$folder/run/started $root/jobs/$folder/tombstone"
  done | xargs stat -c '%Z %n' 2> /dev/null)
  printf 'marks %s\n' "$(printf '%s\n' "$marks" | base64 -w0)"
  printf '%s\n' "$watched" | while read -r folder comment; do
    id='' refused=no uid=''
    if [ -s "$root/jobs/$folder/id" ]; then read -r id < "$root/jobs/$folder/id"; fi
    if [ -s "$root/jobs/$folder/refused" ]; then refused=yes; fi
    if [ -s "$root/jobs/$folder/account" ]; then read -r _ uid < "$root/jobs/$folder/account"; fi
    [ -d "$root/jobs/$folder" ] || uid=gone
    printf 'job %s %s %s %s %s\n' "$comment" "${id:--}" "$refused" "${uid:--}" "$folder"
    if [ -s "$root/jobs/$folder/record" ]; then printf 'record %s\n' "$(base64 -w0 "$root/jobs/$folder/record")"; fi
  done
fi
echo end
