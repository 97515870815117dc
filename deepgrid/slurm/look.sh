# shellcheck shell=sh
# One look at all watched jobs; POSIX sh, run on the login node. Changes nothing.
# Arguments: ROOT USER, then the squeue command; standard input: "FOLDER COMMENT", one watched job a line.
# Answers lines of words, texts in base64, and `end` last, so that half an answer is told from a whole one.
set -u
export LC_ALL=C SLURM_TIME_FORMAT=%s
root=$1 user=$2
shift 2
watched=$(cat)

# Times in queue and spool are by this cluster's clocks, whatever the asker's says.
printf 'clock %s\n' "$(date +%s)"
# The queue before the spool: a job that leaves the one between the two looks is in the other.
rows=$(timeout 20 "$@" < /dev/null 2>&1)
printf 'queue %s %s\n' "$?" "$(printf '%s\n' "$rows" | base64 -w0)"
printf 'user %s\n' "$(id -u "$user")"

if [ -n "$watched" ]; then
  comments=$(mktemp)
  printf '%s\n' "$watched" | sed 's/^[^ ]* /comment=/' > "$comments"
  printf 'spool %s\n' "$(find "$root/spool" -maxdepth 1 -name '[0-9]*' \
    -exec grep -lxF -f "$comments" {} + 2> /dev/null | while read -r file; do cat "$file"; echo; done | base64 -w0)"
  rm -f "$comments"
  printf '%s\n' "$watched" | while read -r folder comment; do
    id='' refused=no
    if [ -s "$root/jobs/$folder/id" ]; then read -r id < "$root/jobs/$folder/id"; fi
    if [ -s "$root/jobs/$folder/refused" ]; then refused=yes; fi
    started=$(stat -c %Z "$root/jobs/$folder/run/started" 2> /dev/null)
    tombstone=$(stat -c %Z "$root/jobs/$folder/tombstone" 2> /dev/null)
    printf 'job %s %s %s %s %s\n' "$comment" "${id:--}" "$refused" "${started:--}" "${tombstone:--}"
    if [ -s "$root/jobs/$folder/record" ]; then printf 'record %s\n' "$(base64 -w0 "$root/jobs/$folder/record")"; fi
  done
fi
echo end
