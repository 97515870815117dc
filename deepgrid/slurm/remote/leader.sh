# shellcheck shell=bash
# Keeps the one leader of a provider, for as long as it is heard; bash (for `read -t`), run on the login node.
# common.sh stands before this.
# Arguments: ROOT PROVIDER SILENCE_S EPOCH WHO. Answers `leader EPOCH`, `standby EPOCH SINCE WHO` or `later WHY`.
#
# The leader is who holds the lock of ROOT/leaders/PROVIDER. It sends a line more often than every SILENCE_S seconds,
# else it is taken for dead: a connection that broke in the middle tells nobody. Each line is answered by the epoch on
# file. EPOCH is that of the caller's last term; it goes on when nobody led since, so what is under way stays valid.
set -u
export LC_ALL=C
root=$1 folder=$1/leaders/$2 silence=$3 last=$4 who=$5
umask 077

# on_file: the epoch, 0 before the first; fails on what is none.
on_file() {
  epoch=0
  [ ! -e "$folder/epoch" ] || read -r epoch < "$folder/epoch" || return 1
  case $epoch in
    '' | *[!0-9]*) return 1 ;;
  esac
}

[ -d "$root" ] || answer later "the login node has no folder $root"
# Others may pass through the grid's folder.
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
