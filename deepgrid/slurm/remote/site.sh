# shellcheck shell=sh disable=SC2034 # config is for config.sh
# The present state of a site's slurm.conf and hooks, for `dps provider install-hooks`. POSIX sh, run on the login
# node; needs config.sh before it. Changes nothing. Arguments: ROOT WRAPPER. Answers "NAME BASE64" lines, and `end` last.
set -u
export LC_ALL=C
root=$1 wrapper=$2

fact() { printf '%s %s\n' "$1" "$(printf '%s' "$2" | base64 -w0)"; }
content() { if [ -f "$2" ]; then printf '%s %s\n' "$1" "$(base64 -w0 "$2")"; fi; }

config=$(timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" scontrol show config 2> /dev/null)

named=$(setting SLURM_CONF)
[ -n "$named" ] || named=${SLURM_CONF:-/etc/slurm/slurm.conf}
folder=$(dirname "$named")
conf=$(readlink -f "$named")
fact named "$named"
fact conf "$conf"
fact folder "$folder"
fact account "$(id -un)"
fact uid "$(id -u)"
slurm_user=$(setting SlurmUser | sed 's/(.*//')
fact slurm_user "$slurm_user"
fact slurm_uid "$(setting SlurmUser | sed -n 's/.*(\([0-9]*\)).*/\1/p')"
fact slurm_group "$(id -gn "$slurm_user" 2> /dev/null)"
fact controller "$(setting 'SlurmctldHost\[0\]')"
for name in JobCompType JobSubmitPlugins; do fact "now $name" "$(setting "$name")"; done
fact spool "$(stat -c '%U:%G %a' "$root/spool" 2> /dev/null)"
if [ -w "$conf" ] && [ -w "$(dirname "$conf")" ] && [ -w "$folder" ]; then fact writable yes; fi
content 'file slurm.conf' "$conf"
for name in jobcomp.lua job_submit.lua; do content "file $name" "$folder/$name"; done
if [ -n "$wrapper" ]; then
  fact wrapper "$(stat -c '%U %a' "$wrapper" 2> /dev/null)"
  content 'file wrapper' "$wrapper"
fi
echo end
