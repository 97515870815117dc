# shellcheck shell=sh disable=SC2034 # config is for config.sh
# Facts about a cluster, for `dps provider doctor`. POSIX sh, run on the login node; needs config.sh before
# it. Leaves nothing behind.
# Argument: ROOT. Answers "NAME VALUE" lines, and `end` last: without it the answer was cut off.
set -u
export LC_ALL=C
root=$1

fact() { printf '%s %s\n' "$1" "$(printf '%s' "$2" | tr '\n' ' ')"; }

fact clock "$(date +%s.%N)"
fact account "$(id -un)"
fact path "$PATH"
fact missing "$(for name in sbatch squeue scancel scontrol sacct; do command -v "$name" > /dev/null || echo "$name"; done)"

# timed COMMAND...: runs it, and prints the seconds that it took.
timed() {
  began=$(date +%s.%N)
  timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" "$@" < /dev/null > /dev/null 2>&1
  echo "$began $(date +%s.%N)" | awk '{ printf "%.1f\n", $2 - $1 }'
}
if config=$(timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" scontrol show config 2> /dev/null); then # else nothing answers
  fact slowest "$({
    timed squeue -h -a -t all -o %A
    timed scontrol -a -o show node
  } | sort -n | tail -n 1)"
  fact partitions "$(timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" sinfo -h -a -o %R 2> /dev/null | sort -u | head -n 20)"
fi
for name in SLURM_VERSION JobCompType AccountingStorageType MinJobAge JobSubmitPlugins; do fact "$name" "$(setting "$name")"; done
folder=$(dirname "$(setting SLURM_CONF)")
for name in SPOOL VERSION; do
  fact "hook $name" "$(sed -n "s/^local $name = \"\(.*\)\"$/\1/p" "$folder/jobcomp.lua" 2> /dev/null)"
done
# The hooks are in the same folder. Where neither is seen, this node has only a part of the configuration.
if [ -r "$folder/jobcomp.lua" ] && [ ! -e "$folder/job_submit.lua" ]; then fact job_submit.lua gone; fi
case $(setting AccountingStorageType) in
  */slurmdbd)
    timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" sacct -n -X -S now -o jobid < /dev/null > /dev/null 2>&1 || fact accounting silent
    ;;
esac

# Parent folders of jobs' files that other accounts cannot enter.
place=$root/jobs
while [ -n "$place" ] && [ "$place" != / ]; do
  mode=$(stat -Lc %a "$place" 2> /dev/null) && [ $((${mode#"${mode%?}"} % 2)) -eq 0 ] && fact "closed $place" "$mode"
  place=${place%/*}
done

for name in / /jobs /spool; do
  place=${root}${name%/}
  state=missing
  if [ -d "$place" ]; then
    state='not writable'
    if probe=$(mktemp "$place/.doctor.XXXXXX" 2> /dev/null); then
      state=writable
      rm -f "$probe"
    fi
  fi
  fact "folder $name" "$state"
done
fact free_mib "$(df -Pm "$root" 2> /dev/null | awk 'NR == 2 { print $4 }')"
fact filesystem "$(stat -f -c %T "$root" 2> /dev/null)"

# Whether a lock excludes a second holder, and is freed when its holder is killed. "One submission per claim" needs
# this.
locks=unknown
if probe=$(mktemp "$root/.doctor.XXXXXX" 2> /dev/null); then
  locks=no
  # shellcheck disable=SC2094 # it is locked, not read
  (flock 8 && exec sleep 20) 8> "$probe" 2> /dev/null &
  holder=$!
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    if ! flock -n "$probe" true 2> /dev/null; then
      kill -9 "$holder"
      if flock -w 5 "$probe" true 2> /dev/null; then locks=yes; fi
      break
    fi
    sleep 0.2
  done
  kill -9 "$holder" 2> /dev/null
  rm -f "$probe"
fi
fact locks "$locks"
echo end
