# shellcheck shell=sh disable=SC2154 # folder is set by what follows
# What scripts with effects share: stands before them. POSIX sh, run on the login node.

# answer WORD TEXT...: the last thing that is done, in one line, as commands may complain in several.
answer() {
  said=$*
  set -f # no names of files: lines become words, and these one line
  IFS='
'
  # shellcheck disable=SC2086 # split at line ends
  set -- $said
  IFS=' '
  printf '%s\n' "$*"
  exit 0
}

# put FILE TEXT: whole and on disk, or not there.
put() {
  if ! { printf '%s\n' "$2" > "$folder/$1.new" && sync "$folder/$1.new" && mv "$folder/$1.new" "$folder/$1"; }; then
    answer later "the login node could not write $folder/$1"
  fi
  sync "$folder"
}
