# shellcheck shell=sh disable=SC2034,SC2154 # the scripts after this set folder, outages and limits, and read the rest
# Reads what sbatch answered, as commands/complaints.py does. POSIX sh, run on the login node; the scripts that submit
# follow after it. OUTAGES and LIMITS are the expressions of that module.

# job_id ANSWER: sets id to the job's id in the answer of sbatch, or of a site's wrapper that prints more.
job_id() {
  id=${1%%;*} # the name of a cluster may follow
  case $id in
    '' | *[!0-9]*)
      id=$(printf '%s\n' "$1" | sed -nE 's/^Submitted batch job ([0-9]{1,10})( .*)?$/\1/; s/^([0-9]{1,10})(;.*)?$/\1/p' |
        tail -n 1)
      ;;
  esac
}

# read_complaint STATUS: sets message to the error of sbatch, which ended with this status and without an id, and kind
# to outage, limit or final. The error decides. Lines before it belong to the site.
read_complaint() {
  message=$(sed -nE 's/^([[:alnum:]_]+: )?((error|fatal): )?(Batch job submission failed|allocation failure): //p' \
    "$folder/complaint" | tail -n 1)
  case $message in
    '')
      message=$(sed -nE '/^Try /d; s/^[[:alnum:]_]+: //; s/^(error|fatal): //; /./p' "$folder/complaint" | tail -n 1)
      ;;
    'Job violates accounting/QOS policy'*)
      limit=$(grep -xE 'sbatch: error: (QOS|Assoc|Max)[A-Za-z]+' "$folder/complaint" | tail -n 1)
      message="$message${limit:+ (${limit##* })}"
      ;;
  esac
  kind=final
  case $1 in
    0 | 124 | 137) kind=outage message=${message:-sbatch did not answer} ;;
    *)
      if printf '%s\n' "$message" | grep -qE "$outages"; then
        kind=outage
      elif printf '%s\n' "$message" | grep -qE "$limits"; then
        kind=limit
      fi
      message=${message:-sbatch failed with status $1}
      ;;
  esac
}
