# shellcheck shell=sh
# Facts about the guards against strangers' jobs. POSIX sh, run on the login node; needs config.sh before
# it. Changes nothing, submits nothing.
# Arguments: PARTITION PROBE WRAPPER ROOT. PROBE is a job name that the submit hook always refuses; its message contains the
# hook's version. WRAPPER is the path of the submission wrapper, or empty. Answers "NAME VALUE" lines, and `end` last.
set -u
export LC_ALL=C
partition=$1 probe=$2 wrapper=$3 root=$4

fact() { printf '%s %s\n' "$1" "$(printf '%s' "$2" | tr -c '[:print:]' ' ')"; }

config=$(timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" scontrol show config 2>&1) || {
  fact silent "$(printf '%s\n' "$config" | head -n 1)"
  echo end
  exit 0
}

fact account "$(id -un)"
fact uid "$(id -u)"
slurm_user=$(setting SlurmUser)
fact slurm_uid "$(printf '%s' "$slurm_user" | sed -n 's/.*(\([0-9]*\)).*/\1/p')"
fact conf "$(setting SLURM_CONF)"
for name in ProctrackType TaskPlugin PrologFlags PrivateData EnforcePartLimits JobContainerType ScronParameters \
  SlurmctldParameters AccountingStorageType JobSubmitPlugins; do
  fact "$name" "$(setting "$name")"
done
case $(setting AccountingStorageType) in
  */slurmdbd)
    # The last PrivateData line comes from slurmdbd. While slurmdbd is down there is none.
    settings=$(timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" sacctmgr -n show config < /dev/null 2> /dev/null) &&
      fact accounting_private "$(printf '%s\n' "$settings" | sed -n 's/^PrivateData *= *//p' | tail -n 1)"
    ;;
esac
fact probe "$(timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" sbatch --test-only --partition="$partition" --job-name="$probe" --wrap=true < /dev/null 2>&1)"
# Only root sees the rules of the firewall, and only this machine's.
rules=$({ PATH=$PATH:/usr/sbin:/sbin; timeout 5 nft list ruleset; timeout 5 iptables-save; } 2> /dev/null)
port=$(setting SlurmctldPort)
fact connection_limits "$(printf '%s\n' "$rules" | grep -E 'ct count over|connlimit-above' |
  grep -cE "dport .*\<${port%%-*}\>")"
fact mount_options "$(awk -v place="$(stat -c %m "$root" 2> /dev/null)" '$2 == place { found = $4 }
  END { print found }' /proc/self/mounts)"
# Other messages of sudo, for example about a rule that it cannot read, are dropped.
if [ -n "$wrapper" ]; then fact wrapper "$(sudo -n -- "$wrapper" --version < /dev/null 2> /dev/null | head -n 1)"; fi
echo end
