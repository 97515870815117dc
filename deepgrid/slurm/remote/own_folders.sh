# shellcheck shell=sh disable=SC2034 # as_user.sh uses user and limit
# Makes storage folders for the accounts of jobs, before other accounts can take their names. POSIX sh, run on the login
# node; needs as_user.sh before it.
# Arguments: SECONDS, and prefixes of paths, to which the number of the account is added. Standard input: accounts, one
# per line. Those after the first are left out when the time is up. Answers `taken ACCOUNT PATH` for each path that is
# not a folder of its account, and `end` last.
set -u
export LC_ALL=C
limit=5 deadline='' seconds_in_all=$1
shift

# is_for UID PATH: whether the path is a folder of this account.
is_for() { [ "$(stat -c '%F %u' -- "$2" 2> /dev/null)" = "directory $1" ]; }

# make PATH: makes the folder. Root gives it away; where root has no rights (NFS), the account makes it itself. No
# other account can make a folder of root.
make() {
  [ "$(id -u)" != 0 ] || mkdir -m 700 -- "$1" 2> /dev/null
  if [ "$(id -u)" = 0 ] && [ "$uid" -ne 0 ] && is_for 0 "$1"; then
    chown -h -- "$uid:$(id -g "$user")" "$1" 2> /dev/null || rmdir -- "$1"
  fi
  # shellcheck disable=SC2016 # the account's shell expands it
  [ -e "$1" ] || [ -L "$1" ] || as_owner 'mkdir -m 700 -- "$0"' "$1"
  is_for "$uid" "$1" || printf 'taken %s %s\n' "$user" "$1"
}

while read -r user && [ "$(date +%s)" -lt "${deadline:-9999999999}" ]; do
  uid=$(id -u "$user" 2> /dev/null) || continue # submission says so
  for prefix; do
    [ ! -d "${prefix%/*}" ] || make "$prefix$uid" < /dev/null # other roots are on the nodes only
  done
  deadline=${deadline:-$(($(date +%s) + seconds_in_all))}
done
echo end
