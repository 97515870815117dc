# shellcheck shell=sh disable=SC2015
# Looks up Slurm ids in ROOT/ledger. POSIX sh, run on the login node. Changes nothing.
# Argument: ROOT. Standard input: ids. Answers these lines, and `end` last:
# * entry ID FOLDER UID TAKEN: for each entry of a known id, the newest entry of an id last
# * customer UID: for each account that ever had a claim, except root and the login's own
# * doubt UID: for each account with a claim whose job may not be in the ledger yet
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
# Accounts of claims whose sbatch has not answered yet: their job may be missing in the ledger.
now=$(date +%s)
for intent in "$root"/jobs/*/intent; do
  claim=${intent%/intent}
  [ -s "$intent" ] && [ ! -s "$claim/id" ] && [ ! -s "$claim/refused" ] && [ ! -e "$claim/tombstone" ] || continue
  if [ $((now - $(cat "$intent"))) -lt 3600 ]; then printf 'doubt %s\n' "$(cut -d ' ' -f 2 "$claim/account")"; fi
done
echo end
