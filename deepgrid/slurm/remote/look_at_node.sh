# shellcheck shell=sh
# What a job sees on its node, for `dps provider doctor`. POSIX sh, run as a job; needs config.sh before it.
# Arguments: MANY, and the roots of the storage. Prints the node's name, how many connections to slurmctld the job can
# hold at the same time (at most MANY; `root` if the job is root's), then each root in which not every account can make
# a folder of its own.
export LC_ALL=C
many=$1
shift
uname -n
# shellcheck disable=SC2034 # setting uses it
config=$(timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" scontrol show config)
host=$(setting 'SlurmctldHost\[0\]')
host=${host#*\(}
port=$(setting SlurmctldPort)
# shellcheck disable=SC2016 # bash expands it
if [ "$(id -u)" -eq 0 ]; then
  echo root
else
  timeout 10 bash -c 'for ((i = 0; i < $2; i++)); do exec {held}<> "/dev/tcp/$0/$1" || exit; echo; done' \
    "${host%\)}" "${port%%-*}" "$many" 2> /dev/null | wc -l
fi
for folder; do
  [ "$(stat -Lc %F%a "$folder" 2>&1)" = directory1777 ] || echo "$folder"
done
