#!/bin/bash
# sandbox.sh ROOT PYTHON: runs ROOT/script as an ordinary account on a machine with its own network. The caller
# gave this shell private net, mount and pid namespaces. The outside is one tap device and tests/sbatch/world.py.
#   ROOT/prepare   bash that runs before it as root; if it fails, everything fails
#   ROOT/meanwhile bash that runs in parallel, with the script's pid in $SCRIPT
#   ROOT/left      the processes left after its end
set -eu
root=$1 python=$2
export SYSTEM_PATH=$PATH:/usr/sbin:/sbin
call() { PATH=$SYSTEM_PATH "$@"; }

call ip link set lo up
call ip tuntap add up0 mode tap
call ip address add 198.51.100.1/24 dev up0
call ip address add 198.51.100.2/24 dev up0
call ip link set up0 up
call ip route add default via 198.51.100.254

mount -t tmpfs tmpfs /dev/net
[[ -v HIDE_TUN ]] || mknod -m 666 /dev/net/tun c 10 200 2>/dev/null || umount /dev/net # not allowed in a user namespace
servers=$(readlink -f /etc/resolv.conf)
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/wireguard "${servers%/*}"
[[ -e $servers ]] || : >"$servers"
echo "nameserver 198.51.100.1" >"$root/resolv.conf"
mount --bind "$root/resolv.conf" "$servers"

exec 3< <(exec "$python" "${0%/*}/world.py")
read -r _ <&3 # wait until it answers
call bash -eu "$root/prepare"

before=$(ps -eo pid=)
account=()
! setpriv --reuid=12345 --regid=12345 --clear-groups true 2>/dev/null ||
  account=(setpriv --reuid=12345 --regid=12345 --clear-groups)
"${account[@]}" bash "$root/script" </dev/null 3<&- &
export SCRIPT=$!
bash -eu "$root/meanwhile" 3<&- &
status=0
wait "$SCRIPT" || status=$?
wait "$!"
# shellcheck disable=SC2009 # pgrep cannot exclude the earlier processes
for _ in {1..100}; do # the kernel may still be ending killed processes
  ps -eo pid=,args= | grep -vwF -e "$before" -e "ps -eo" -e grep >"$root/left" || break
  sleep 0.1
done
exit "$status"
