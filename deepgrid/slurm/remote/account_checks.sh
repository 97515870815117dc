# shellcheck shell=sh disable=SC2034 # config is for config.sh
# Facts about the accounts of jobs, for `dps provider doctor`. POSIX sh, run on the login node; needs
# config.sh before it. Changes nothing.
# Arguments: BECOME PATTERN (an extended regular expression, or empty). Standard input: names of accounts, one per line.
# Answers "NAME VALUE" lines, `account NAME UID SUDO GROUP` for each existing account, and `end` last.
set -u
export LC_ALL=C
become=$1 pattern=$2
fact() { printf '%s %s\n' "$1" "$(printf '%s' "$2" | tr '\n' ' ')"; }

fact login "$(id -un)"
fact uid "$(id -u)"
config=$(timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" scontrol show config 2> /dev/null)
fact slurm_user "$(setting SlurmUser | sed 's/(.*//')"
fact private "$(setting PrivateData)"
fact level "$(timeout "${DEEPGRID_SLURM_TIMEOUT_S:-20}" sacctmgr -n -P show user "$(id -un)" format=AdminLevel 2> /dev/null | head -n 1)"

names=$(cat)
if [ -n "$pattern" ]; then
  like=$(getent passwd | cut -d: -f1 | grep -xE "$pattern")
  fact like "$(printf '%s\n' "$like" | grep -c .)"
  names=$(printf '%s\n' "$names" "$(printf '%s\n' "$like" | head -n 1)")
fi
printf '%s\n' "$names" | grep . | while read -r name; do
  uid=$(id -u "$name" 2> /dev/null) || continue
  sudo=- group=own
  if [ "$become" = sudo ] && [ "$uid" -ne "$(id -u)" ]; then
    sudo=no
    if sudo -n -u "$name" -- true < /dev/null > /dev/null 2>&1; then sudo=yes; fi
    case " $(id -G "$name") " in *" $(id -g) "*) group=shared ;; esac
  fi
  printf 'account %s %s %s %s\n' "$name" "$uid" "$sudo" "$group"
done
echo end
