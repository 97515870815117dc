# shellcheck shell=sh disable=SC2034,SC2154 # folder is set for common.sh, uid by read
# Moves the completion records of claims from the spool to their jobs' folders. POSIX sh, run on the login node; needs
# common.sh before it.
# Arguments: ROOT TERM. Standard input: "FOLDER NAME COMMENT", one claim per line. Answers one line, a word and its
# text. One search serves all claims, as there are many. Each record is moved under the lock of its claim.
set -u
export LC_ALL=C
root=$1 term=$2
claims=$(cat)

# Refuse a leader that was replaced. The locks are not needed for this check: any supervisor may move a record.
if [ -n "$term" ]; then
  read -r epoch < "$root/leaders/${term% *}/epoch" || answer later "the login node could not read who leads"
  [ "$epoch" = "${term#* }" ] || answer deposed
fi

# is_its FILE NAME USER: whether this record belongs to a job with that name and account.
is_its() {
  its=0
  while IFS= read -r line; do
    case $line in "name=$2" | "user_id=$3") its=$((its + 1)) ;; esac
  done < "$1"
  [ "$its" -eq 2 ]
}

# keep FILE FOLDER NAME: moves the record to the folder, unless the job belongs to another account or has another name.
keep() {
  [ -e "$2/account" ] || return 0
  exec 9> "$2/lock" && flock -w 20 9 || return 1
  read -r _ uid < "$2/account"
  is_its "$1" "$3" "$uid" || return 0
  # Records are appended: a requeued job has one record per run. A record that is there twice counts once.
  {
    if [ -s "$2/record" ]; then cat "$2/record"; fi
    cat "$1" && echo
  } > "$2/record.new" && sync "$2/record.new" && mv "$2/record.new" "$2/record" && rm -f "$1"
}

cd "$root/spool" || answer later "the login node cannot read $root/spool"
set --
while read -r _ _ comment; do
  set -- "$@" -e "comment=$comment"
done << CLAIMS
$claims
CLAIMS
found=$(find . -maxdepth 1 -name '[0-9]*' -exec grep -HxF "$@" {} + 2> /dev/null | sort -t. -k3,3n) # the earliest first
[ -n "$found" ] || answer acknowledged
while read -r place name comment; do
  while IFS= read -r line; do
    [ "${line#*:comment=}" = "$comment" ] || continue
    (keep "${line%%:*}" "$root/jobs/$place" "$name") || answer later "another attempt holds the lock of $place"
  done << FOUND
$found
FOUND
done << CLAIMS
$claims
CLAIMS
answer acknowledged
