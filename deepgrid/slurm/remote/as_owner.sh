# shellcheck shell=sh disable=SC2154 # the script after this sets user, uid and limit
# Runs commands with the rights of a job's account. POSIX sh, run on the login node; the scripts that use it follow.

# as_owner SCRIPT ARGUMENT...: runs a script of sh with only the rights of the account `user` with the id `uid`, for
# `limit` seconds. The script prints its end as a word, and sets said: `done`, or `failed` or `absent` for status 1, else
# the status is 124. The account can stop, kill or trace its processes, and keep what they inherit. So the time is kept
# outside, they inherit only their own three descriptors, and nothing waits for what is left of them. The account can
# also print the word itself: then its own files stay until the next search.
as_owner() {
  set -- sh -c "$@"
  case $(id -u) in
    "$uid") ;;
    0)
      group=65534 # an account that was removed, or made again with another number, has no group
      [ "$(id -u "$user" 2> /dev/null)" != "$uid" ] || group=$(id -g "$user")
      set -- setpriv --reuid="$uid" --regid="$group" --clear-groups -- "$@"
      ;;
    *) set -- sudo -n -u "$user" -- "$@" ;;
  esac
  said=$({ timeout -k 2 "$limit" "$@" < /dev/null 2> /dev/null 3>&- & } | timeout "$((limit + 3))" head -c 4096 | tail -n 1)
  case $said in
    done) ;;
    failed | absent) return 1 ;;
    *) return 124 ;;
  esac
}
