# shellcheck shell=sh disable=SC2015
# Which claims Slurm's ids belong to, by ROOT/ledger; POSIX sh, run on the login node. Changes nothing.
# Argument: ROOT; standard input: ids. Answers a line "entry ID FOLDER UID TAKEN" for each that is known, the newest of an id
# last; "customer UID" for each other account that ever had a claim; "doubt UID" for those with a claim that may have a job
# without being known yet; and `end`.
set -u
export LC_ALL=C
root=$1

if [ -e "$root/ledger" ]; then
  awk -v me="$(id -u)" 'FILENAME == "-" { wanted[$1]; next }
    NF >= 3 && $2 !~ /^batch-/ && $3 != 0 && $3 != me { customers[$3] }
    NF >= 3 && $1 in wanted { print "entry", $0 }
    END { for (uid in customers) print "customer", uid }' - "$root/ledger" || exit 1
else
  cat > /dev/null
fi
# Accounts of claims whose sbatch has not answered yet: a job of theirs may be missing from the ledger.
now=$(date +%s)
for intent in "$root"/jobs/*/intent; do
  claim=${intent%/intent}
  [ -s "$intent" ] && [ ! -s "$claim/id" ] && [ ! -s "$claim/refused" ] && [ ! -e "$claim/tombstone" ] || continue
  if [ $((now - $(cat "$intent"))) -lt 3600 ]; then printf 'doubt %s\n' "$(cut -d ' ' -f 2 "$claim/account")"; fi
done
echo end
