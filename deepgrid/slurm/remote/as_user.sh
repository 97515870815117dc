# shellcheck shell=sh disable=SC2154 # the script after this sets user, uid and limit
# Runs commands with the rights of a job's account. POSIX sh, run on the login node; the scripts that use it follow.
me=$(id -u)

# as_user SECONDS COMMAND...: runs the command in the job's account, with the rights of that account only, even if we are
# root. Sets said to at most 16 KiB of its output. Fails like the command, and with status 124 if it takes longer.
#
# The account can stop, kill and trace this process, and take its descriptors. So it gets no descriptor but its own three
# and no variable of ours. Its time is measured outside of it, and nothing waits for it or for its output after that. If
# the account stops it, sudo stops itself too. So what we started is killed one second later.
as_user() {
  seconds=$1
  shift
  case $me in
    "$uid") set -- timeout -k 1 "$seconds" "$@" ;;
    0)
      # An account that was removed, or made again with another number, has no group.
      group=65534
      [ "$(id -u "$user" 2> /dev/null)" != "$uid" ] || group=$(id -g "$user")
      set -- timeout -k 1 "$seconds" env -i "PATH=$PATH" LC_ALL=C ${SLURM_CONF:+"SLURM_CONF=$SLURM_CONF"} \
        ${SLURM_CLUSTERS:+"SLURM_CLUSTERS=$SLURM_CLUSTERS"} setpriv --reuid="$uid" --regid="$group" --clear-groups --no-new-privs -- "$@"
      ;;
    *)
      set -- sudo -n -u "$user" -- env -i "PATH=$PATH" LC_ALL=C ${SLURM_CONF:+"SLURM_CONF=$SLURM_CONF"} \
        ${SLURM_CLUSTERS:+"SLURM_CLUSTERS=$SLURM_CLUSTERS"} timeout -k 1 "$seconds" "$@"
      ;;
  esac
  # A new shell has none of the descriptors that this one keeps aside.
  # shellcheck disable=SC2016 # the other shell expands it
  said=$({
    timeout -s KILL "$((seconds + 3))" sh -c '"$@" 2>&1; echo "status $?"' sh "$@" \
      <&5 3>&- 5<&- 7>&- 8>&- 9>&- 2> /dev/null &
  } 5<&0 | timeout "$((seconds + 2))" cat | head -c 16384)
  status=${said##*status }
  said=${said%status *}
  case $status in '' | *[!0-9]*) return 124 ;; esac
  return "$status"
}

# as_owner SCRIPT ARGUMENT...: runs a script of sh like this, for `limit` seconds. A status above 2 (a killed
# process) becomes 124. The account can choose the status: then its own files stay until the next search.
as_owner() {
  as_user "$limit" sh -c "$@" < /dev/null
  status=$?
  [ "$status" -le 2 ] || status=124
  return "$status"
}
