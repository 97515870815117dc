# shellcheck shell=sh disable=SC2154 # the script after this sets folder
# Functions shared by the scripts with side effects, which follow after this. POSIX sh, run on the login node.

# answer WORD TEXT...: prints the answer as one line and exits. The text may be a message of several lines. Where a
# script answers for several claims, `asked` names the claim.
asked=''
answer() {
  said=$*
  set -f # no expansion of file names: the lines become words, and the words one line
  IFS='
'
  # shellcheck disable=SC2086 # split at line ends
  set -- $said
  IFS=' '
  printf '%s\n' "${asked:+$asked }$*"
  exit 0
}

# put FILE TEXT ...: writes the files durably, each of them atomically and in this order.
put() {
  put_files='' put_drafts=''
  while [ "$#" -gt 0 ]; do
    printf '%s\n' "$2" > "$folder/$1.new" || answer later "the login node could not write $folder/$1"
    put_files="$put_files $1" put_drafts="$put_drafts $folder/$1.new"
    shift 2
  done
  # shellcheck disable=SC2086 # one argument per file: our folders have no spaces
  sync $put_drafts || answer later "the login node could not write$put_drafts"
  for put_file in $put_files; do
    mv "$folder/$put_file.new" "$folder/$put_file" || answer later "the login node could not write $folder/$put_file"
  done
  sync "$folder"
}
