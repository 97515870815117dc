# shellcheck shell=sh
# What a job finds on its node. POSIX sh, run as a job; needs config.sh before it, and the output of `scontrol show
# config` in $config.

# look_at_features APPTAINER [PATH]: prints a line `feature NAME` for each thing that jobs may need and that works here.
# APPTAINER is the program's name or path. Programs are looked up as jobs do, with the profile of a login shell. PATH is
# where steps of sessions look for python3, without any profile.
look_at_features() {
  # shellcheck disable=SC2016 # the inner shells expand it
  timeout 60 bash -lc 'PATH=$PATH:$1; exec sh -c "$feature_checks" sh "$0" "$2"' "$1" "$PATH" "${2:-/usr/local/bin:/usr/bin:/bin}" 2> /dev/null < /dev/null
  case $(setting JobAcctGatherType),$(setting JobAcctGatherParams) in
    jobacct_gather/none,*) ;;
    *[Oo]ver[Mm]emory[Kk]ill*) echo 'feature memory.sampled' ;;
  esac
}

# shellcheck disable=SC2016 # a script
export feature_checks='
has() { command -v "$1" > /dev/null; }
works() { timeout 20 "$@" > /dev/null 2>&1; }
check() { name=$1; shift; ! "$@" || echo "feature $name"; }

http() { has curl && has zip; }
pyxis() { timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" srun --help 2> /dev/null | grep -q container-image; }
namespaces() {
  for program in unshare nsenter setpriv ip; do has "$program" || return; done
  [ -c /dev/net/tun ] && (: <> /dev/net/tun) && works unshare --user --net true
}
wireguard() {
  has wg && has wg-quick || return
  works unshare --user --map-root-user --net ip link add wg0 type wireguard || has wireguard-go
}
python3_of_steps() { (PATH=$steps && works python3 -I -S -c "import sys; sys.exit(sys.version_info < (3, 7))"); }
libcrypto_of_python3() {
  works python3 -I -c "import ctypes, sys, _hashlib
ctypes.CDLL(_hashlib.__file__).EVP_aes_256_gcm
sys.exit(sys.version_info < (3, 7))"
}
# Whether the kernel limits the memory of this job, by a cgroup of the job.
cgroup() {
  job=/job_$SLURM_JOB_ID/
  while IFS=: read -r _ kinds path; do
    case $path/ in *"$job"*) ;; *) continue ;; esac
    path=${path%%"${job%/}"*}$job
    for file in /sys/fs/cgroup/memory$path/memory.limit_in_bytes /sys/fs/cgroup$path/memory.max; do
      [ -r "$file" ] && read -r limit < "$file" || continue
      [ "$limit" = max ] || [ "${#limit}" -ge 19 ] || return 0
    done
  done < /proc/self/cgroup
  return 1
}

steps=$2
check python3 python3_of_steps
check containers.apptainer works "$1" --version
check containers.enroot works enroot version
check containers.pyxis pyxis
check storage.s3 works s5cmd version
check storage.http http
check storage.private libcrypto_of_python3
check memory.cgroup cgroup
PATH=$PATH:/usr/sbin:/sbin
if namespaces; then
  check network.pasta has pasta
  check network.slirp4netns has slirp4netns
  check network.wireguard wireguard
fi
'
