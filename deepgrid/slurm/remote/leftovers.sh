# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with as_user.sh
# Finds and removes the folders that claims leave on the login node. POSIX sh, run there; needs as_user.sh before it.
# Arguments: VERB ROOT STORAGE GRID, then the verb's own. GRID is the prefix of the folders of this grid's claims.
# Prints one line per folder or output, then the line `end`. An answer without `end` is incomplete. A line
# `skipped KIND FOLDER WHY` is about something that could not be removed. It never keeps others from being removed.
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
MOST_PER_ACCOUNT=1000 # storage folders per search; an account can make any number of names

# find_ DAYS: prints the folders of claims that did not change for DAYS, and all storage of claims that have a folder.
find_() {
  find "$root/jobs" -mindepth 1 -maxdepth 1 -type d -name "$grid-*" -mmin "+$(($1 * 1440))" -printf 'claim %f\n'
  if cd "$storage" 2> /dev/null; then
    timeout -k 2 60 find . -mindepth 1 -maxdepth 2 -regextype posix-extended \
      -regex '\./[0-9]+([.][A-Za-z0-9]{10})?(/(dg-[0-9]{1,15}|0x[0-9a-f]{64})\.[0-9]+)?' -printf '%d %U %y %P\n' 2> /dev/null |
      awk -v most="$MOST_PER_ACCOUNT" '{ split($4, part, "/"); split(part[1], owner, "."); uid = owner[1] }
        $2 != uid || $3 != "d" { if ($4 == uid && told++ < 20) print "taken", uid; next }
        $1 == 2 && !seen[uid, part[2]]++ && ++count[uid] <= most { print uid, part[2] }' |
      while read -r owner name; do
        case $owner in
          taken) printf 'skipped storage %s its name is taken by another account\n' "$name" ;;
          *) claim_of "$owner" "${name%.*}" "${name#*.}" ;;
        esac
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
  digits=${2#0x}
  digits=${digits#dg-}
  while [ "${digits#0}" != "$digits" ]; do digits=${digits#0}; done
  [ -n "$digits" ] && [ "${#digits}" -le 15 ] || return 0
  case $2 in 0x*) digits=$((0x$digits)) ;; esac
  for folder in "$root/jobs/$grid-$digits"-*; do
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

# remove SECONDS: reads lines of `find_` and `outputs` from standard input, and removes these and what earlier calls left
# in ROOT/removed until the time is up. Each gets 2 s at first, and 20 s in a second round. An account that used up its
# time waits for the next round. So it does not delay others. Storage goes before its claim, as it needs the claim's
# account. Otherwise the order is random.
remove() {
  deadline=$(($(date +%s) + $1))
  mkdir -p "$root/removed"
  todo=$({
    cat
    find "$root/removed" -mindepth 1 -maxdepth 1 -type d -printf 'rest %f\n'
  } | shuf | sort -s -r -k1,1)
  exec 3>&1
  for limit in 2 20; do
    todo=$(printf '%s\n' "$todo" | grep . | take_turns)
  done
  echo end
}

# take_turns: tries each line of standard input. Prints those whose time was not enough.
take_turns() {
  slow=' '
  while read -r kind folder name && [ "$(date +%s)" -lt "$deadline" ]; do
    know_owner "$root/jobs/$folder" || know_owner "$root/removed/$folder"
    why='it could not be removed'
    begun=$(date +%s)
    case $slow in *" $uid "*) status=124 ;; *) remove_one < /dev/null && status=0 || status=$? ;; esac
    # An account can also succeed slowly, by keeping its output open.
    [ "$(($(date +%s) - begun))" -le "$limit" ] || slow="$slow$uid "
    case $status/$limit in
      0/*) printf 'removed %s %s\n' "$kind" "$folder" >&3 ;;
      124/* | 137/*)
        slow="$slow$uid "
        if [ "$limit" -eq 2 ]; then
          printf '%s %s %s\n' "$kind" "$folder" "$name"
        else
          printf 'skipped %s %s its account used up its time\n' "$kind" "$folder" >&3
        fi
        ;;
      *) printf 'skipped %s %s %s\n' "$kind" "$folder" "$why" >&3 ;;
    esac
  done
}

# remove_one: removes what the line names. Fails with status 124 or 137 if the time was not enough, and else sets why.
remove_one() {
  case $kind in
    claim) remove_claim "$folder" ;;
    rest) clear_out "$root/removed/$folder" ;;
    storage) remove_storage "$name" ;;
    output) flock -n "$root/jobs/$folder/lock" rm -f "$root/jobs/$folder/output.log" ;;
  esac
}

# remove_claim FOLDER: removes the folder unless another process holds its lock. After the move, the job's account
# cannot reach it by any path.
remove_claim() {
  if [ ! -d "$root/removed/$1" ]; then
    why='another process holds its lock'
    flock -n "$root/jobs/$1/lock" mv "$root/jobs/$1" "$root/removed/" 2> /dev/null || return 1
    rm -f "$root/spool/.reserve.deepgrid:$(printf '%s' "$1" | tr - :)"
    why='it could not be removed'
  fi
  clear_out "$root/removed/$1"
}

# clear_out FOLDER: removes a claim's folder. A job may leave millions of files: the next call continues. Without root,
# only the job's account can empty its own `run` folders. It cannot reach them by path, so its command starts with such
# a folder as working directory. The file `account` is removed last: a next call reads it.
clear_out() {
  for inner in "$1/run" "$1"/place.*/run; do
    if [ "$(id -u)" = 0 ] || [ ! -d "$inner" ] || [ -z "$uid" ]; then continue; fi
    (cd "$inner" && as_owner 'find . -xdev -mindepth 1 -delete ||
      { chmod -R u+rwX . && find . -xdev -mindepth 1 -delete; }') || return
  done
  timeout -k 2 "$limit" rm -rf --one-file-system "$1/run" "$1"/place.* &&
    timeout -k 2 "$limit" rm -rf --one-file-system "$1"
}

# remove_storage NAME: removes the storage of a claim's job. Only folders of its account count, because other accounts can
# make folders, links and files with any name, next to them and in their own folders.
remove_storage() {
  why='its account is not on record'
  [ -n "$uid" ] || return 1
  why='it could not be removed'
  # A step of the job may have removed its own rights, so they are restored before a second attempt.
  # shellcheck disable=SC2016 # the owner's shell expands it
  as_owner 'set -f
    end=2
    cd "$0" && for place in $(find . -mindepth 1 -maxdepth 1 -type d -name "$1*" -uid "$1" -printf "%f\n"); do
      case $place in "$1" | "$1".??????????) chmod u+rwx "$place" ;; *) continue ;; esac
      if [ -L "$place/$2" ] || [ ! -d "$place/$2" ]; then continue; fi
      rm -rf --one-file-system "$place/$2" || {
        chmod -R u+rwX "$place/$2"
        rm -rf --one-file-system "$place/$2"
      } || end=1
      [ "$end" = 1 ] || end=0
      [ "$place" = "$1" ] || rmdir "$place"
    done
    exit "$end"' "$storage" "$uid" "$1" && return
  status=$?
  [ "$status" -ne 2 ] || why='its account has no such folder'
  return "$status"
}

case $verb in
  find) find_ "$@" ;;
  outputs) outputs ;;
  remove) remove "$@" ;;
esac
