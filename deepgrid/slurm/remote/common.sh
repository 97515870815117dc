# shellcheck shell=sh disable=SC2154 # the script after this sets folder
# Functions shared by the scripts with side effects, which follow after this. POSIX sh, run on the login node.

# answer WORD TEXT...: prints the answer as one line and exits. The text may be a message of several lines.
answer() {
  said=$*
  set -f # no expansion of file names: the lines become words, and the words one line
  IFS='
'
  # shellcheck disable=SC2086 # split at line ends
  set -- $said
  IFS=' '
  printf '%s\n' "$*"
  exit 0
}

# put FILE TEXT: writes the file atomically and durably.
put() {
  if ! { printf '%s\n' "$2" > "$folder/$1.new" && sync "$folder/$1.new" && mv "$folder/$1.new" "$folder/$1"; }; then
    answer later "the login node could not write $folder/$1"
  fi
  sync "$folder"
}
