"""The environment of every command on the login node: no settings of a user for Slurm, and Slurm's folder on the PATH.

Variables such as SQUEUE_USERS or SCANCEL_NAME, which a profile may set, change what Slurm's commands do: a running job
would look lost. Only the two that say where the cluster is stay. POSIXLY_CORRECT and its like go, too: they change how
Slurm and coreutils read their options. With it, squeue of Slurm 26.05 knows no -O.
"""

from __future__ import annotations

from collections.abc import Sequence

from deepgrid.slurm.ssh.login_settings import LoginSettings

# `export -p` prints one variable per line, and values of several lines as they are. So only plain names count.
_CLEAN = r"""
set -f; IFS='
'
for line in $(export -p); do
  case $line in
    'export SLURM_CONF'* | 'export SLURM_CLUSTERS'*) ;;
    'export SQUEUE_'* | 'export SCANCEL_'* | 'export SACCT_'* | 'export SINFO_'* | 'export SBATCH_'* | \
      'export SALLOC_'* | 'export SRUN_'* | 'export SCONTROL_'* | 'export SLURM_'*)
      line=${line#export } line=${line%%=*}
      case $line in *[!A-Za-z0-9_]*) ;; *) unset "$line" ;; esac ;;
  esac
done
set +f; unset IFS line POSIXLY_CORRECT GREP_OPTIONS BLOCKSIZE BLOCK_SIZE DF_BLOCK_SIZE CDPATH
PATH=${1:+$1:}$PATH
if ! command -v squeue > /dev/null; then
  # Many sites put Slurm on the PATH of login shells only.
  PATH=$PATH$(timeout 5 "${SHELL:-sh}" -l -c 'printf "\n:deepgrid:%s\n" "$PATH"' 2> /dev/null < /dev/null |
    sed -n 's/^:deepgrid:/:/p')
fi
export PATH DEEPGRID_SLURM_PATH="$1" DEEPGRID_SLURM_TIMEOUT_S="$2"
shift 2
exec "$@"
"""


def in_clean_environment(argv: Sequence[str], settings: LoginSettings) -> list[str]:
    """Return the command that runs `argv` in this environment. The scripts use the two variables of deepgrid."""
    return ["sh", "-c", _CLEAN, "deepgrid", settings.slurm_path, f"{settings.slurm_timeout_s:.0f}", *argv]
