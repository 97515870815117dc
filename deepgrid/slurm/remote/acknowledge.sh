# shellcheck shell=sh disable=SC2034,SC2154 # folder is set for common.sh, uid by read
# Moves the completion records of claims from the spool to their jobs' folders. POSIX sh, run on the login node; needs
# common.sh before it.
# Arguments: ROOT TERM. Standard input: "FOLDER NAMES COMMENT", one claim per line. NAMES have commas between them.
# Answers a line "late FOLDER WHY" for each claim that must be asked for again, and last a word and its text.
# One search serves all claims, as there are many. Each record is moved under the lock of its claim. All claims together
# wait a second for such locks, so that one claim does not delay the others.
set -u
export LC_ALL=C
root=$1 term=$2
claims=$(cat)

# Refuse a leader that was replaced. The locks are not needed for this check: any supervisor may move a record.
if [ -n "$term" ]; then
  read -r epoch < "$root/leaders/${term% *}/epoch" || answer later "the login node could not read who leads"
  [ "$epoch" = "${term#* }" ] || answer deposed
fi

# is_its FILE NAMES USER: whether this record belongs to a job with one of those names and that account.
is_its() {
  its=0
  while IFS= read -r line; do
    case $line in
      name=*,*) ;;
      name=*) case ,$2, in *",${line#name=},"*) its=$((its + 1)) ;; esac ;;
      "user_id=$3") its=$((its + 1)) ;;
    esac
  done < "$1"
  [ "$its" -eq 2 ]
}

# keep FILE FOLDER NAMES: moves the record to the folder, unless the job belongs to another account or has another name.
keep() {
  [ -e "$2/account" ] || return 0
  # A redirection that fails would end the shell at `exec` and at `:`, but not at `true`.
  { true >> "$2/lock"; } 2> /dev/null || {
    echo "its folder cannot be written"
    return 1
  }
  exec 9>> "$2/lock"
  flock -n 9 || { [ "$(date +%s)" -lt "$deadline" ] && flock -w 1 9; } || {
    echo "another attempt holds the lock"
    return 1
  }
  read -r _ uid < "$2/account"
  is_its "$1" "$3" "$uid" || return 0
  append "$1" "$2" 2> /dev/null || { [ ! -s "$2/record" ] && mv "$1" "$2/record"; } 2> /dev/null || {
    echo "the login node could not write $2/record"
    return 1
  }
}

# append FILE FOLDER: Records are appended: a requeued job has one record per run. A record that is there twice counts
# once.
append() {
  {
    if [ -s "$2/record" ]; then cat "$2/record" && echo || return 1; fi
    cat "$1" && echo
  } > "$2/record.new" && sync "$2/record.new" && mv "$2/record.new" "$2/record" && rm -f "$1"
}

cd "$root/spool" || answer later "the login node cannot read $root/spool"
deadline=$(($(date +%s) + 1))
set -f
# shellcheck disable=SC2046 # one argument per claim; comments have no spaces
set -- $(printf '%s\n' "$claims" | sed 's/.* /-ecomment=/')
found=$(find . -maxdepth 1 -name '[0-9]*' -exec grep -HxF "$@" {} + 2> /dev/null | sort -t. -k3,3n) # the earliest first
printf '%s\n' "$claims" | while read -r place names comment; do
  why=$(printf '%s\n' "$found" | while IFS= read -r line; do
    [ "$line" = "${line%%:*}:comment=$comment" ] || continue
    keep "${line%%:*}" "$root/jobs/$place" "$names" || break
  done)
  if [ -n "$why" ]; then printf 'late %s %s\n' "$place" "$why"; else rm -f ".reserve.$comment"; fi
done
answer acknowledged
