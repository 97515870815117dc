# shellcheck shell=sh disable=SC2154 # as_user.sh sets me
# Gives a job its Unix account and its files. POSIX sh, run on the login node; needs common.sh and as_user.sh before it.
# The scripts that submit follow after it. `folder` is the job's folder and belongs to the login. The job can write only
# output.log and run/ in it.
export LC_ALL=C
umask 077
folder='' user='' uid='' become='' complaint='' ticket=''

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

# end_jobs ID...: cancels these jobs if they are the account's. Sets said. Slurm is asked as the login, or as root by
# the wrapper, as the account could stop or kill a process of its own. The account itself asks only where there is
# neither root nor the wrapper nor Slurm's operator level.
end_jobs() {
  case $me/$become in
    0/* | "$uid"/*) said=$(timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" scancel "--user=$uid" "$@" < /dev/null 2>&1) && return ;;
    */sudo:*) said=$(sudo -n -- "${become#sudo:}" "$user" --cancel "$@" < /dev/null 2>&1) && return ;;
    *) said=$(timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" scancel "--user=$uid" "$@" < /dev/null 2>&1) && return ;;
  esac
  case $me/$become/$said in
    0/* | "$uid"/*) ;;
    *denied* | *'Invalid user id'* | *'is not allowed: --cancel'*) # the last one by an old wrapper
      as_user 20 scancel "$@" < /dev/null && return
      ;;
  esac
  said=${said:-scancel did not answer}
  case $said in # what is left is about jobs that are not gone
    *'Invalid job id'* | *'already complet'*)
      said=$(printf '%s\n' "$said" | grep -i error | grep -vE 'Invalid job id|already complet')
      ;;
  esac
  [ -z "$said" ]
}

# find_sbatch: sets path to the PATH of jobs. It has the folder of sbatch.
path=/usr/local/bin:/usr/bin:/bin
find_sbatch() {
  case $me/$become in "$uid"/*) ;; */sudo:*) return ;; esac # the wrapper has a PATH of its own
  path=${DEEPGRID_SLURM_PATH:+$DEEPGRID_SLURM_PATH:}$path
  IFS=:
  for place in $path; do
    [ ! -x "$place/sbatch" ] || {
      unset IFS
      return
    }
  done
  unset IFS
  sbatch=$(command -v sbatch) || answer later "sbatch is not in $PATH: set slurm_path in the Slurm login block"
  path=$path:${sbatch%/*}
}

# lay_out: makes output.log and run/ for the account. Only the account and the login can read them.
lay_out() {
  find_sbatch
  case $me in
    0 | "$uid")
      if ! { mkdir -p "$folder/run" && true >> "$folder/output.log" && lay_ticket "$folder/run" &&
        { [ "$uid" -eq "$me" ] || chown "$uid:$(id -g "$user")" "$folder/output.log" "$folder/run"; }; }; then
        answer later "the login node could not give files in $folder to $user"
      fi
      ;;
    *) [ -L "$folder/run" ] || hand_over ;;
  esac
}

# lay_ticket RUN: makes the login's file RUN/unstarted once, and sets ticket to its inode and its time, which the caller
# puts into the file ticket. The guard removes the file before the payload begins. The account can remove or move it too,
# but cannot make the same file again. So as long as it is as noted, nothing of the claim ran.
lay_ticket() {
  ticket=''
  [ ! -s "$folder/ticket" ] || return 0
  if [ -e "$1/unstarted" ] || [ -L "$1/unstarted" ]; then rm -f "$1/unstarted" || return 1; fi
  dd if=/dev/null "of=$1/unstarted" conv=excl status=none && ticket=$(stat -c '%i:%.9Z' "$1/unstarted")
}

# hand_over: makes the account's files without root. The account itself makes them, in a folder that is open to all
# accounts for a moment and has the login's group. Only this script knows the folder's random name. It checks the files
# after it closed the folder. Fails if the login cannot become the account.
hand_over() {
  rm -f "$folder/ticket" # of an attempt that did not finish: without the link run, nothing was submitted
  if ! { place=$(mktemp -d "$folder/place.XXXXXXXX") && chmod 3733 "$place" && echo "$place" > "$folder/place"; }; then
    answer later "the login node could not write $folder"
  fi
  # shellcheck disable=SC2016 # the other shell expands it
  as_user 20 sh -c 'set -C; umask 027; read -r place && true > "$place/output.log" &&
    mkdir "$place/run" && chmod g=wx,g-s,+t "$place/run"' < "$folder/place"
  status=$?
  rm -f "$folder/place"
  if [ "$status" -ne 0 ]; then
    rm -rf "$place"
    complaint="the supervisor could not act as $user: $(printf '%s\n' "$said" | head -n 1)"
    [ "$status" -ne 124 ] || answer later "$user did not make its files within 20 s"
    return 1
  fi
  chmod 00711 "$place"
  if [ "$(stat -c '%F %u %h %a' "$place/output.log")" != "regular empty file $uid 1 640" ] ||
    [ "$(stat -c '%F %u %a' "$place/run")" != "directory $uid 1730" ]; then
    answer later "another account wrote to $place"
  fi
  if ! { lay_ticket "$place/run" && put ticket "$ticket" && ticket='' && mv "$place/output.log" "$folder/output.log" &&
    ln -s "${place##*/}/run" "$folder/run"; }; then
    answer later "the login node could not write $folder"
  fi
}

# run_sbatch COMMAND...: submits the script on standard input in the job's account, with a clean environment. `become`
# is uid, sudo, or `sudo:` and the path of the wrapper that submits as root (hooks/submit_wrapper.sh). Prints the id;
# messages of sbatch are in the folder's file `complaint`.
run_sbatch() {
  case $me/$become in
    "$uid"/*) ;;
    */sudo:*)
      shift
      sudo -n -- "${become#sudo:}" "$user" "$@" 2> "$folder/complaint"
      return
      ;;
  esac
  set -- env -i "PATH=$path" "HOME=$folder/run" "USER=$user" "LOGNAME=$user" SHELL=/bin/bash LANG=C.UTF-8 \
    ${SLURM_CONF:+"SLURM_CONF=$SLURM_CONF"} ${SLURM_CLUSTERS:+"SLURM_CLUSTERS=$SLURM_CLUSTERS"} timeout -k 5 30 "$@"
  if [ "$uid" -eq "$me" ]; then
    "$@" 2> "$folder/complaint"
  elif [ "$become" = sudo ]; then
    as_user 40 "$@"
    status=$?
    printf '%s' "$said" > "$folder/complaint"
    printf '%s\n' "$said" | grep -xE '[0-9]+(;.*)?' | tail -n 1
    return "$status"
  else
    "$@" "--uid=$uid" "--gid=$(id -g "$user")" 2> "$folder/complaint"
  fi
}
