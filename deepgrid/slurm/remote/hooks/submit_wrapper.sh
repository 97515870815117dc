#!/usr/bin/env -S -i PATH=/usr/bin:/bin LC_ALL=C sh
# shellcheck shell=sh
# Submission wrapper, owned by root. A supervisor that is not root submits and cancels its customers' jobs with it.
# Usage: deepgrid-sbatch ACCOUNT OPTION..., with the batch script on standard input, or
# deepgrid-sbatch ACCOUNT --cancel ID..., which cancels jobs of this account only. sudoers lets the supervisor's account
# run it as root, so it trusts no input: ACCOUNT must be an account of the grid, each OPTION must be listed
# below, files must be below ROOT, and no line of the script is read as an option.
set -uf
umask 077
root='@ROOT@' conf='@CONF@' path='@PATH@' accounts=' @ACCOUNTS@ ' pattern='@PATTERN@' version='@VERSION@'

refuse() {
  printf 'sbatch: error: deepgrid-sbatch: %s\n' "$1" >&2
  exit 1
}

# is CHARACTERS LENGTH TEXT: whether the text has only these characters, is at most LENGTH long, and is no option. It
# starts no other program, as this runs for each job.
is() {
  case $3 in '' | -* | *[!$1]*) return 1 ;; esac
  [ "${#3}" -le "$2" ]
}

# below PATH: whether the path is in the folder of a job.
below() {
  is 'A-Za-z0-9_.+@/-' 1000 "$1" || return 1
  case $1 in *//* | */./* | */../* | */. | */.. | */) return 1 ;; esac
  case $1 in "$root"/jobs/?*/?* | "$root"/batch/?*/?*/?*) ;; *) return 1 ;; esac
}

if [ "$*" = --version ]; then
  printf 'deepgrid-sbatch %s\n' "$version"
  exit 0
fi
[ "$#" -ge 1 ] || refuse 'no account was named'
account=$1
shift
is 'A-Za-z0-9_.@-' 64 "$account" || refuse 'this is not the name of an account'
case $account in
  root) refuse 'this account gets no jobs' ;;
  *[!0-9]*) ;;
  *) refuse 'an account is named, not numbered' ;;
esac
case $accounts in
  *" $account "*) ;;
  *) printf '%s\n' "$account" | grep -qxE -e "${pattern:-^}" || refuse 'this account is not one of the grid' ;;
esac
if ! uid=$(id -u "$account" 2> /dev/null) || ! gid=$(id -g "$account" 2> /dev/null); then
  refuse 'there is no such account on the login node'
fi
if [ "$uid" -eq 0 ] || [ "$gid" -eq 0 ]; then refuse 'this account gets no jobs'; fi

cd / || refuse 'the root folder cannot be entered'
# As root, so that no process of the account can stop or kill it.
if [ "${1:-}" = --cancel ]; then
  shift
  [ "$#" -ge 1 ] || refuse 'no job was named'
  for id; do is '0-9' 10 "$id" || refuse 'this is not the number of a job'; done
  exec env -i "PATH=$path" "SLURM_CONF=$conf" timeout -k 5 20 scancel "--user=$uid" "$@"
fi

chdir='' output=''
for option; do
  value=${option#*=}
  case $option in
    --parsable | --no-requeue | --ignore-pbs | --open-mode=append) ;;
    --job-name=*) is 'A-Za-z0-9_.-' 128 "$value" ;;
    --comment=deepgrid:*) is 'A-Za-z0-9:_.-' 200 "$value" ;;
    --partition=*) is 'A-Za-z0-9_.,-' 200 "$value" ;;
    --output=*) below "$value" && output=$value ;;
    --gpus=*) is 'A-Za-z0-9_.:-' 80 "$value" ;; # TYPE:COUNT
    --chdir=*) below "$value" && chdir=$value ;;
    --nodes=* | --ntasks=* | --ntasks-per-node=* | --cpus-per-task=* | --mem=* | --mem-per-cpu=* | --time=*)
      is '0-9' 9 "$value"
      ;;
    *) false ;;
  esac || refuse "this option is not allowed: $(printf '%s' "${option%%=*}" | tr -cd 'A-Za-z0-9-')"
done
if [ -z "$chdir" ] || [ -z "$output" ]; then refuse 'output and working folder must be named'; fi

IFS= read -r first || refuse 'there is no script'
case $first in '#!/'* | '#! /'*) ;; *) refuse 'a script begins with #!/' ;; esac
# sbatch reads options from comments before the first command, and options of PBS and LSF from the whole script.
{
  printf '%s\n:\n' "$first"
  exec cat
} | exec env -i "PATH=$path" "HOME=$chdir" "USER=$account" "LOGNAME=$account" SHELL=/bin/bash \
  LANG=C.UTF-8 "SLURM_CONF=$conf" timeout -k 5 30 sbatch "$@" --ignore-pbs --no-requeue "--uid=$uid" "--gid=$gid"
