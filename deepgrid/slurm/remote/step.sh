# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with account.sh
# Starts a program in the allocation of a running job, as the job's account, and joins it to our standard streams. POSIX
# sh, run on the login node; needs as_user.sh and account.sh before it.
# Arguments: ACCOUNT BECOME FOLDER SLURM_ID TASKS PROGRAM. The job has TASKS tasks. PROGRAM is Python. Slurm itself refuses jobs of other accounts.
export LC_ALL=C
become=$2 folder=$3 id=$4 tasks=$5 program=$6
if ! know_account "$1"; then
  echo "$complaint" >&2
  exit 1
fi
# A step before the script could hold up the guard, and its time would not be billed.
tries=0
while [ -e "$folder/run/unstarted" ]; do
  tries=$((tries + 1))
  if [ "$tries" -gt 5 ]; then
    echo "the job's script has not begun yet: its nodes boot, or the prolog runs" >&2
    exit 1
  fi
  sleep 1
done
answer() { echo "$2" >&2 && exit 1; }
find_sbatch
if [ -z "$path" ] || ! command -v srun > /dev/null; then
  echo "srun is not in $PATH" >&2
  exit 1
fi
# All memory and GPUs of the job: a step gets none that other steps hold, unless it shares them.
set -- srun "--jobid=$id" --overlap --nodes=1 --ntasks=1 --relative=0 --mem=0 --unbuffered --mpi=none --cpu-bind=none \
  --quiet --job-name=session "--chdir=$folder/run" python3 -I -S -c "$program"
set -- env -i "PATH=$(dirname "$(command -v srun)"):$path:/usr/sbin:/sbin" "HOME=$folder/run" "USER=$user" "LOGNAME=$user" LANG=C.UTF-8 "DEEPGRID_TASKS=$tasks" \
  ${SLURM_CONF:+"SLURM_CONF=$SLURM_CONF"} ${SLURM_CLUSTERS:+"SLURM_CLUSTERS=$SLURM_CLUSTERS"} "$@"
case $me in
  "$uid") exec "$@" ;;
  0) exec setpriv --reuid="$uid" --regid="$(id -g "$user")" --clear-groups --no-new-privs -- "$@" ;;
  *) exec sudo -n -u "$user" -- "$@" ;;
esac
