# shellcheck shell=sh
# Finds and removes the folders that claims leave on the login node. POSIX sh, run there.
# Arguments: VERB ROOT STORAGE GRID, then those of the verb. GRID is the prefix of the folders of this grid's claims.
# Prints one line per folder or output, then the line `end`. An answer without `end` is incomplete.
#
# ROOT/jobs/GRID-JOB-CLAIM is the folder of a claim. STORAGE/UID/NAME.SLURMID is the storage of its job, or
# STORAGE/UID.XXX/NAME.SLURMID if another account made STORAGE/UID. A job removes its storage itself unless it was
# killed. Jobs own parts of both trees and can put anything there. So a claim's folder is moved to ROOT/removed before
# it is removed, where jobs cannot reach it. Storage is removed with the rights of its owner. No path follows a link.
set -u
export LC_ALL=C
verb=$1 root=$2 storage=$3 grid=$4
shift 4
umask 077

# find_ DAYS: prints the folders of claims that did not change for DAYS, and all storage of claims that have a folder.
find_() {
  find "$root/jobs" -mindepth 1 -maxdepth 1 -type d -name "$grid-*" -mmin "+$(($1 * 1440))" -printf 'claim %f\n'
  if cd "$storage" 2> /dev/null; then
    find . -mindepth 2 -maxdepth 2 -type d -regextype posix-extended \
      -regex '\./[0-9]+([.][A-Za-z0-9]{10})?/0x[0-9a-f]{64}\.[0-9]+' -printf '%f %h\n' 2> /dev/null |
      while read -r name owner; do
      owner=${owner#./}
      claim_of "${owner%%.*}" "${name%.*}" "${name#*.}"
    done
  fi
  echo end
}

# outputs: prints `output FOLDER KIB` for outputs of claims that take more than 1 MiB of the disk.
outputs() {
  cd "$root/jobs" || exit 1
  find . -mindepth 2 -maxdepth 2 -path "./$grid-*/output.log" -type f -printf '%k %h\n' |
    while read -r kib folder; do
      if [ "$kib" -gt 1024 ]; then printf 'output %s %s\n' "${folder#./}" "$kib"; fi
    done
  echo end
}

# claim_of UID NAME SLURMID: prints the storage of this name with its claim: the claim's job had this name and id, and
# ran under this account. Prints nothing if there is no such claim.
claim_of() {
  digits=$(printf '%s\n' "${2#0x}" | sed 's/^0*//')
  [ -n "$digits" ] && [ "${#digits}" -le 15 ] || return 0
  for folder in "$root/jobs/$grid-$((0x$digits))"-*; do
    if [ -s "$folder/id" ] && read -r id _ < "$folder/id" && [ "$id" = "$3" ] &&
      know_owner "$folder" && [ "$uid" = "$1" ]; then
      printf 'storage %s %s\n' "${folder##*/}" "$2.$3"
    fi
  done
}

# know_owner FOLDER: sets user and uid to the account of the claim's job.
know_owner() {
  user='' uid=''
  [ -s "$1/account" ] && read -r user uid < "$1/account"
}

# as_owner COMMAND...: runs the command with only the rights of the account that `know_owner` found.
as_owner() {
  case $(id -u) in
    "$uid") "$@" ;;
    0) setpriv --reuid="$uid" --regid="$(id -g "$user")" --clear-groups "$@" ;;
    *) sudo -n -u "$user" -- "$@" ;;
  esac < /dev/null 2> /dev/null
}

# remove SECONDS: reads lines of `find_` and `outputs` from standard input and removes these until the time is up.
remove() {
  deadline=$(($(date +%s) + $1))
  mkdir -p "$root/removed"
  for folder in "$root/removed"/*; do # from an earlier call that did not finish
    if [ -d "$folder" ] && [ "$(date +%s)" -lt "$((deadline - $1 / 2))" ]; then clear_out "$folder"; fi
  done
  while read -r kind folder name && [ "$(date +%s)" -lt "$deadline" ]; do
    case $kind in
      claim) remove_claim "$folder" ;;
      storage) remove_storage "$folder" "$name" ;;
      output) flock -n "$root/jobs/$folder/lock" rm -f "$root/jobs/$folder/output.log" ;;
    esac && printf 'removed %s %s\n' "$kind" "$folder"
  done
  echo end
}

# remove_claim FOLDER: removes the folder unless another process holds its lock. After the move, the job's account
# cannot reach it by any path.
remove_claim() {
  flock -n "$root/jobs/$1/lock" mv "$root/jobs/$1" "$root/removed/" && clear_out "$root/removed/$1"
}

# clear_out FOLDER: removes a claim's folder, with a timeout per command, as a job may leave millions of files. The next
# call continues. Without root, only the job's account can empty its own `run` folders. It cannot reach them by path, so
# its command starts with such a folder as working directory. The file `account` is removed last: a next call reads it.
clear_out() {
  for inner in "$1/run" "$1"/place.*/run; do
    if [ "$(id -u)" = 0 ] || [ ! -d "$inner" ] || ! know_owner "$1"; then continue; fi
    (cd "$inner" && as_owner timeout 60 sh -c 'find . -xdev -type d ! -perm -700 -exec chmod u+rwx {} \; &&
      find . -xdev -mindepth 1 -delete') || return 1
  done
  timeout 60 rm -rf --one-file-system "$1/run" "$1"/place.* && timeout 60 rm -rf --one-file-system "$1"
}

# remove_storage FOLDER NAME: removes the storage of a claim's job.
remove_storage() {
  know_owner "$root/jobs/$1" || return 1
  # A step of the job may have removed write permissions, so they are restored first.
  # shellcheck disable=SC2016 # the owner's shell expands it
  as_owner timeout 60 sh -c 'cd "$0" || exit 1
    for place in "$1" "$1".??????????; do
      [ -d "$place/$2" ] || continue
      (cd "$place" && [ ! -L "$2" ] || exit 1
        find "$2" -xdev -type d ! -perm -700 -exec chmod u+rwx {} \; ; rm -rf --one-file-system "$2") || exit 1
      [ "$place" = "$1" ] || rmdir "$place"
    done' "$storage" "$uid" "$2"
}

case $verb in
  find) find_ "$@" ;;
  outputs) outputs ;;
  remove) remove "$@" ;;
esac
