# shellcheck shell=sh
# Gives a job its Unix account and its files. POSIX sh, run on the login node; needs common.sh before it. The scripts
# that submit follow after it. `folder` is the job's folder and belongs to the login. The job can write only output.log
# and run/ in it.
export LC_ALL=C
umask 077
folder='' user='' uid='' become='' complaint=''
me=$(id -u)

# know_account ACCOUNT: sets user and uid; an empty name means the login's own account. On failure it sets complaint.
know_account() {
  if [ -n "$1" ]; then
    user=$1
    uid=$(id -u "$user" 2> /dev/null) || uid=''
    case $user in *[!0-9]*) ;; *) uid='' ;; esac # id takes a number for a name
  else
    user=$(id -un) uid=$me
  fi
  complaint=''
  if [ -z "$uid" ]; then
    complaint="there is no account $user on the login node"
  elif [ -n "$1" ] && [ "$uid" -eq 0 ]; then
    complaint="the account $user is root's"
  elif [ "$uid" -ne "$me" ] && [ "${become%%:*}" != sudo ] && [ "$me" -ne 0 ]; then
    complaint="$(id -un) is not root, and cannot submit for $user"
  fi
  [ -z "$complaint" ]
}

# as_user COMMAND...: runs the command in the job's account, with the rights of that account only, also if we are root.
as_user() {
  case $me in
    "$uid") "$@" ;;
    0)
      # An account that was removed, or made again with another number, has no group.
      group=65534
      [ "$(id -u "$user" 2> /dev/null)" != "$uid" ] || group=$(id -g "$user")
      setpriv --reuid="$uid" --regid="$group" --clear-groups --no-new-privs -- "$@"
      ;;
    *) sudo -n -u "$user" -- env ${SLURM_CONF:+"SLURM_CONF=$SLURM_CONF"} "$@" ;;
  esac
}

# lay_out: makes output.log and run/ for the account. Only the account and the login can read them.
lay_out() {
  case $me in
    0 | "$uid")
      if ! { mkdir -p "$folder/run" && : >> "$folder/output.log" &&
        { [ "$uid" -eq "$me" ] || chown "$uid:$(id -g "$user")" "$folder/output.log" "$folder/run"; }; }; then
        answer later "the login node could not give files in $folder to $user"
      fi
      ;;
    *) [ -L "$folder/run" ] || hand_over ;;
  esac
}

# hand_over: makes the account's files without root. The account itself makes them, in a folder that is open to all
# accounts for a moment and has the login's group. Only this script knows the folder's random name. It checks the files
# after it closed the folder. Fails if the login cannot become the account.
hand_over() {
  if ! { place=$(mktemp -d "$folder/place.XXXXXXXX") && chmod 3733 "$place"; }; then
    answer later "the login node could not write $folder"
  fi
  # shellcheck disable=SC2016 # the other shell expands it
  printf '%s\n' "$place" | as_user sh -c 'set -C; umask 027; read -r place && : > "$place/output.log" &&
    mkdir "$place/run" && chmod g=x,g-s "$place/run"' > "$folder/complaint" 2>&1 || {
    complaint="the supervisor could not act as $user: $(head -n 1 "$folder/complaint")"
    rm -rf "$place"
    return 1
  }
  chmod 00711 "$place"
  if [ "$(stat -c '%F %u %h %a' "$place/output.log")" != "regular empty file $uid 1 640" ] ||
    [ "$(stat -c '%F %u %a' "$place/run")" != "directory $uid 710" ]; then
    answer later "another account wrote to $place"
  fi
  if ! { mv "$place/output.log" "$folder/output.log" && ln -s "${place##*/}/run" "$folder/run"; }; then
    answer later "the login node could not write $folder"
  fi
}

# run_sbatch COMMAND...: submits the script on standard input in the job's account, with a clean environment. `become`
# is uid, sudo, or `sudo:` and the path of the wrapper that submits as root (hooks/submit_wrapper.sh).
run_sbatch() {
  case $me/$become in
    "$uid"/*) ;;
    */sudo:*)
      shift
      sudo -n -- "${become#sudo:}" "$user" "$@"
      return
      ;;
  esac
  set -- env -i PATH=/usr/local/bin:/usr/bin:/bin "HOME=$folder/run" "USER=$user" "LOGNAME=$user" SHELL=/bin/bash \
    LANG=C.UTF-8 ${SLURM_CONF:+"SLURM_CONF=$SLURM_CONF"} timeout -k 5 30 "$@"
  if [ "$uid" -eq "$me" ]; then
    "$@"
  elif [ "$become" = sudo ]; then
    sudo -n -u "$user" -- "$@"
  else
    "$@" "--uid=$uid" "--gid=$(id -g "$user")"
  fi
}
