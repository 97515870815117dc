# shellcheck shell=sh
# Why slurmctld does not answer, as far as this machine can see. POSIX sh, run on the login node. Changes nothing, and
# asks no command of Slurm, because it would wait too.
# Answers `accepts` if slurmctld accepts a connection, `from ADDRESS COUNT` and `account NAME COUNT` for those with the
# most connections to it, and `end` last. Addresses are seen on the controller, accounts on the machine of the client.
set -u
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"

for conf in "${SLURM_CONF:-}" /etc/slurm/slurm.conf /run/slurm/conf/slurm.conf; do
  [ ! -r "$conf" ] || break
done
setting() { sed -n "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*\([^#[:space:]]*\).*/\1/Ip" "$conf" 2> /dev/null | head -n 1; }
# connected FILTER: established connections that match.
connected() { timeout 10 ss -Htne state established "$1 = :$port"; }
# most KIND: the most frequent lines of standard input, with their number.
most() { sort | uniq -c | sort -rn | head -n 3 | while read -r count what; do printf '%s %s %s\n' "$1" "$what" "$count"; done; }

port=$(setting SlurmctldPort)
port=${port%%-*}
port=${port:-6817}
host=$(setting SlurmctldHost)
host=${host#*\(}
host=${host%\)}
# shellcheck disable=SC2016 # bash expands it
if timeout 5 bash -c ': < "/dev/tcp/$0/$1"' "$host" "$port" 2> /dev/null; then echo accepts; fi
connected sport | awk '{ sub(/:[0-9]+$/, "", $4); print $4 }' | most from
connected dport | sed -n 's/.* uid:\([0-9]*\) .*/\1/p' | most uid | while read -r _ uid count; do
  name=$(getent passwd "$uid" | cut -d : -f 1)
  printf 'account %s %s\n' "${name:-$uid}" "$count"
done
echo end
