# shellcheck shell=sh
# Finds and removes what claims leave on the login node. POSIX sh, run there.
# Arguments: VERB ROOT STORAGE GRID, then those of the verb. Answers lines, and `end` last: without it the answer was
# cut off.
#
# ROOT/jobs/GRID-JOB-CLAIM is the folder of a claim. STORAGE/UID/NAME.SLURMID is the storage of its job, or
# STORAGE/UID.XXX/NAME.SLURMID if another account made STORAGE/UID. A job removes its storage itself unless it was
# killed. Jobs own parts of both trees and can put anything there. So a claim's folder is moved out of their reach
# before it is removed, storage is removed with the rights of the account that owns it, and no path follows a link.
set -u
export LC_ALL=C
verb=$1 root=$2 storage=$3 grid=$4
shift 4
umask 077

# find_ DAYS: the folders of claims that did not change for DAYS, and all storage of claims that have a folder.
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

# claim_of UID NAME SLURMID: the claim whose job had this name and id and ran under this account.
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

# as_owner COMMAND...: runs the command with the rights of the owner only.
as_owner() {
  case $(id -u) in
    "$uid") "$@" ;;
    0) setpriv --reuid="$uid" --regid="$(id -g "$user")" --clear-groups "$@" ;;
    *) sudo -n -u "$user" -- "$@" ;;
  esac < /dev/null 2> /dev/null
}

# remove SECONDS: removes what standard input names, in lines like those of `find_`, as far as there is time.
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
    esac && printf 'removed %s %s\n' "$kind" "$folder"
  done
  echo end
}

# remove_claim FOLDER: removes the folder unless another process holds its lock. After the move, the job's account has
# no path to it.
remove_claim() {
  flock -n "$root/jobs/$1/lock" mv "$root/jobs/$1" "$root/removed/" && clear_out "$root/removed/$1"
}

# clear_out FOLDER: removes a claim's folder as far as there is time. A job may leave millions of files; the next call
# continues. Without root, only the job's account can empty its own folder; it gets in because the working folder is
# already set. The file with the account is removed last.
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
  remove) remove "$@" ;;
esac
