# shellcheck shell=sh disable=SC2034,SC2154 # protocol.sh, which follows, sets root and submits
# Submits several claims of one account by one command. POSIX sh, run on the login node; needs account.sh before it.

# make_folder: makes the claim's folder.
make_folder() { [ -d "$folder" ] || (umask 066 && mkdir -p "$folder"); }

# submissions PATIENCE_S OUTAGES LIMITS ACCOUNT BECOME AT_ONCE WITHIN_S [FOLDER NAMES COMMENT SIZE OPTIONS]...: submits claims of
# one account, AT_ONCE of them at the same time. Answers a line "FOLDER WORD TEXT" per claim.
# * Standard input has their scripts, each of SIZE bytes. OPTIONS are the arguments of `submit`, with tabs between them.
# * Claims that have not started after WITHIN_S are left to another call. An attempt younger than PATIENCE_S is not
#   repeated.
# * OUTAGES and LIMITS match messages that refuse nothing (see complaint.sh).
# * BECOME (uid or sudo) says how to become ACCOUNT, which is empty for the login's own account.
submissions() {
  patience=$1 outages=$2 limits=$3 become=$5 at_once=$6 until=$(($(date +%s) + $7)) begun=0 no_account=''
  know_account "$4" || no_account=$complaint
  account_user=$user account_uid=$uid user='' uid=''
  shift 7
  while [ "$#" -ge 5 ]; do
    place=$1 names=$2 comment=$3 size=$4 options=$5
    shift 5
    folder=$root/jobs/$place script=$root/jobs/$place/script.$$
    [ "$(date +%s)" -le "$until" ] || break
    # A connection that breaks while the script arrives must not submit a part of it. What follows cannot be read then.
    if ! { make_folder && head -c "$size" > "$script" && [ "$(wc -c < "$script")" -eq "$size" ]; } 2> /dev/null; then
      rm -f "$script"
      printf '%s later the login node could not write %s, or it was cut off on its way\n' "$place" "$script"
      break
    fi
    exec 8< "$script"
    rm -f "$script"
    (
      asked=$place IFS='	'
      set -f
      # shellcheck disable=SC2086 # one argument per word
      set -- $options
      set +f
      unset IFS
      under_lock submit "$@"
    ) &
    begun=$((begun + 1))
    [ $((begun % at_once)) -ne 0 ] || wait
  done
  wait
}
