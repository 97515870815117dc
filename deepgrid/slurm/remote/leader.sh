# shellcheck shell=bash
# Holds the leader lock of a provider as long as heartbeats arrive. bash (for `read -t`), run on the login node; needs
# common.sh before it.
# Arguments: ROOT PROVIDER SILENCE_S EPOCH WHO. Answers `leader EPOCH`, `standby EPOCH SINCE WHO` or `later WHY`.
#
# The leader holds the lock of ROOT/leaders/PROVIDER. It must send a line more often than every SILENCE_S seconds.
# Without this heartbeat the lock is freed, as a broken connection may go unnoticed. The answer to each line is the
# epoch on file. EPOCH is the epoch of the caller's last term. The term continues if no other supervisor led since, so
# that its effects stay valid.
set -u
export LC_ALL=C
root=$1 folder=$1/leaders/$2 silence=$3 last=$4 who=$5
umask 077

# on_file: reads the epoch from its file, 0 if there is none. Fails if the file does not contain a number.
on_file() {
  epoch=0
  [ ! -e "$folder/epoch" ] || read -r epoch < "$folder/epoch" || return 1
  case $epoch in
    '' | *[!0-9]*) return 1 ;;
  esac
}

[ -d "$root" ] || answer later "the login node has no folder $root"
# Other accounts can pass through the grid's folder.
{ (umask 066 && mkdir -p "$root/leaders") && mkdir -p "$folder" && : >> "$folder/lock"; } 2> /dev/null ||
  answer later "the login node could not write $folder"
exec 9>> "$folder/lock"
flock -n -E 1 9
case $? in
  0) ;;
  1)
    on_file || answer later "$folder/epoch is not readable"
    answer standby "$epoch" "$(cat "$folder/leader" 2> /dev/null)"
    ;;
  *) answer later "flock does not work on $root" ;;
esac
on_file || answer later "$folder/epoch is not readable"
if [ "$epoch" -eq 0 ] || [ "$epoch" != "$last" ]; then
  epoch=$((epoch + 1))
  put leader "$(date +%s) $who"
  put epoch "$epoch"
fi
printf 'leader %s\n' "$epoch"

while read -r -t "$silence" _; do
  on_file || epoch=unknown
  printf '%s\n' "$epoch"
done
