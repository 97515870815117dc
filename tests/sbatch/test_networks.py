"""Networks of steps: slirp4netns, pasta and WireGuard carry real traffic of an ordinary account.

WireGuard is wireguard-go if the kernel has no device for it. On a machine without a usable /dev/net/tun each of these
tests checks that the step reports this and fails with 69. Tunnels: see test_tunnels.py.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from deepgrid.workflow import Definition, parse
from tests.sbatch.hostile import FIGURES, NAMES, PIECES
from tests.sbatch.network_support import does
from tests.sbatch.network_support import sandbox as sandbox
from tests.sbatch.sandbox import CANNOT, NO_TUN, UNAVAILABLE, Sandbox, has_tun
from tests.sbatch.support import lint

HEAD = "resources: {tasks: 4, cpusPerTask: 1, memPerCpu: 1, gpus: 0}\n"
STACKS = ["slirp4netns", "pasta"]
ACCOUNT = 12345 if os.getuid() == 0 else 0  # the user id of scripts in the sandbox
EITHER = ["slirp4netns", pytest.param("pasta", marks=pytest.mark.long)]  # the quick tests need only one


def job(text: str) -> Definition:
    return parse(HEAD + text, "job.yaml").model


def step(stack: str, command: str, more: str = "") -> Definition:
    run = f"network: {stack}\n    shell: /bin/bash\n    command: |\n"
    body = "\n".join("      " + line for line in command.splitlines())
    return job(f"steps:\n- run:\n    {run}{body}\n    {more}\n")


REACH = """exec 2>/dev/null
cat <>/dev/tcp/198.51.100.1/8080
timeout 1 cat <>/dev/tcp/127.0.0.1/8081
timeout 1 bash -c 'cat <>/dev/tcp/169.254.254.2/8081'
getent ahostsv4 some.test | cut -d ' ' -f 1 | uniq
exit 7"""


@pytest.mark.parametrize("stack", STACKS)
def test_a_step_reaches_the_internet_and_not_the_loopback_of_its_node(sandbox: Sandbox, stack: str) -> None:
    """By default the step uses the node's name server. It ends with the command's exit status."""
    does(sandbox, step(stack, REACH), 7, ["world", "203.0.113.1"])


@pytest.mark.parametrize("stack", EITHER)
def test_a_step_has_the_name_servers_that_it_asks_for(sandbox: Sandbox, stack: str) -> None:
    command = "getent ahostsv4 some.test | cut -d ' ' -f 1 | uniq; cat /etc/resolv.conf"
    servers = ["nameserver 198.51.100.2", "nameserver 203.0.113.9"]
    does(sandbox, step(stack, command, "dns: [198.51.100.2, 203.0.113.9]"), 0, ["203.0.113.2", *servers])


@pytest.mark.parametrize("stack", EITHER)
def test_a_step_sees_its_own_interfaces_folder_and_rights_only(sandbox: Sandbox, stack: str) -> None:
    command = "ip -br address | cut -d ' ' -f 1; pwd; id -u; grep CapEff /proc/self/status; compgen -v __dg || :"
    folder = sandbox.root / "work dir"
    does(
        sandbox,
        step(stack, command, f"workDir: {folder}"),
        0,
        ["lo", "net0", str(folder), str(ACCOUNT), "CapEff:\t0000000000000000"],
    )


@pytest.mark.parametrize("stack", EITHER)
def test_user_and_group_ids_are_mapped_once(sandbox: Sandbox, stack: str) -> None:
    command = "id -u; id -g; cat /proc/self/uid_map | tr -s ' '"
    does(sandbox, step(stack, command, "mapUid: 0\n    mapGid: 5"), 0, ["0", "5", f" 0 {ACCOUNT} 1"])


@pytest.mark.parametrize("stack", EITHER)
def test_after_term_the_network_lasts_as_long_as_the_command(sandbox: Sandbox, stack: str) -> None:
    """Slurm signals all processes of a step. The sandbox checks that no process is left."""
    command = f"""trap 'cat <>/dev/tcp/198.51.100.1/8080; echo bye; exit 3' TERM
: >{sandbox.root}/up
while :; do sleep 0.1; done 2>/dev/null"""
    end = f"until [[ -e {sandbox.root}/up ]]; do sleep 0.05; done; rm {sandbox.root}/up; kill -TERM $SCRIPT"
    does(sandbox, step(stack, command), 143, ["world", "bye"], meanwhile=end)


@pytest.mark.parametrize("stack", EITHER)
def test_a_killed_step_leaves_no_network_program(sandbox: Sandbox, stack: str) -> None:
    """Only the outermost process is killed. Its children would never end by themselves."""
    command = f"(trap '' TERM; : >{sandbox.root}/up; exec sleep 1000) & exec sleep 1000"
    end = f"until [[ -e {sandbox.root}/up ]]; do sleep 0.05; done; rm {sandbox.root}/up; pkill -KILL -x unshare"
    does(sandbox, step(stack, command), 137, ["Killed"], meanwhile=end)


def test_a_node_without_the_device_is_reported(sandbox: Sandbox) -> None:
    for stack in STACKS:
        outcome = sandbox.run(step(stack, "echo never"), hide_tun=True)
        assert (outcome.status, outcome.output.splitlines()) == (UNAVAILABLE, [NO_TUN])


@pytest.mark.parametrize(
    ("program", "more"),
    [
        ("slirp4netns", ""),
        pytest.param("ip", "", marks=pytest.mark.long),
        ("wg-quick", "customNetworkInterfaces: [{wireguard: {privateKey: %s}}]\n    mapUid: 0" % ("A" * 43 + "=")),
        ("ssh", "customNetworkInterfaces: [{bore: {boreAddress: 'b:2200', targetPort: 1}}]"),
    ],
    ids=lambda value: value.partition(":")[0],
)
def test_a_node_without_a_program_is_reported(sandbox: Sandbox, program: str, more: str) -> None:
    """The sandbox hides the program in every folder."""
    hide = f"for file in /{{usr/,}}{{s,}}bin/{program}; do [[ ! -e $file ]] || mount --bind /dev/null $file; done"
    outcome = sandbox.run(step("slirp4netns", "echo never", more), prepare=hide)
    assert (outcome.status, outcome.output.splitlines()) == (UNAVAILABLE, [CANNOT + f"this node has no {program}"])


def test_a_network_program_that_fails_is_reported(sandbox: Sandbox) -> None:
    """Without a default route pasta fails, and the step does not wait for it."""
    if has_tun():
        outcome = sandbox.run(step("pasta", "echo never"), prepare="ip route del default")
        *reasons, sentence = outcome.output.splitlines()
        assert (outcome.status, sentence) == (UNAVAILABLE, CANNOT + "net0 did not come up")
        assert any("interface" in reason for reason in reasons)


def wg(*args: str, given: str = "") -> str:
    return subprocess.run(["wg", *args], input=given, capture_output=True, text=True, check=True).stdout.strip()


def test_wireguard_interfaces_come_up_in_the_order_of_the_list(sandbox: Sandbox) -> None:
    """Real tunnels to a real peer in the sandbox's network. Keys are neither arguments nor files nor variables."""
    own, other, shared = wg("genkey"), wg("genkey"), wg("genpsk")
    public = {key: wg("pubkey", given=key) for key in (own, other)}
    (sandbox.root / "peer.conf").write_text(
        f"[Interface]\nPrivateKey={other}\nListenPort=51820\n[Peer]\nPublicKey={public[own]}\n"
        f"PresharedKey={shared}\nAllowedIPs=10.9.0.2/32\n"
    )
    prepare = f"""ip link add far type wireguard 2>/dev/null || wireguard-go far >/dev/null 2>&1
wg setconf far {sandbox.root}/peer.conf
ip address add 10.9.0.1/24 dev far
ip link set far up
python3 -m http.server --bind 10.9.0.1 --directory {sandbox.root}/bin 8000 >/dev/null 2>&1 &"""
    interfaces = f"""mapUid: 0
    customNetworkInterfaces:
    - wireguard: {{privateKey: {public[other]}, address: [10.8.0.1/32]}}
    - wireguard:
        privateKey: {own}
        address: [10.9.0.2/24]
        peers: [{{publicKey: {public[other]}, preSharedKey: {shared}, allowedIPs: [10.9.0.0/24],
          endpoint: "198.51.100.1:51820", persistentKeepalive: 25}}]"""
    command = """ip -br address | cut -d ' ' -f 1
until curl -fsS --max-time 2 -o /dev/null http://10.9.0.1:8000/srun 2>/dev/null; do sleep 0.2; done; echo through
ls /mnt /run/wireguard | grep conf
env | grep -c -e __dg -e PrivateKey
cat /proc/[0-9]*/cmdline | tr '\\0' ' ' >"$DEEPSQUARE_SHARED_WORLD_TMP/args\""""
    made = step("slirp4netns", command, interfaces)
    lint(made)
    if does(sandbox, made, 0, ["lo", "net0", "wg0", "wg1", "through", "0"], prepare=prepare):
        arguments = (Path(sandbox.storage.world_tmp) / "args").read_text()
        assert "network_interior" in arguments
        assert not [key for key in (own, other, shared) if key in arguments]


MEET = """virtualNetworks:
- {name: other, gatewayAddress: 10.6.0.1/24}
- {name: lab, gatewayAddress: 10.7.0.1/24}
steps:
- launch:
    steps:
    - catch: [{run: {command: exit 5}}]
      steps:
      - run:
          network: slirp4netns
          mapUid: 0
          customNetworkInterfaces: [{vnet: {name: lab, address: 10.7.0.2/24}}]
          command: exec python3 -m http.server --bind 10.7.0.2 8000 >/dev/null 2>&1
- run:
    network: STACK
    mapUid: 0
    customNetworkInterfaces:
    - {vnet: {name: other, address: 10.6.0.9/24}}
    - {vnet: {name: lab, address: 10.7.0.3/24}}
    command: |
      until curl -fsS --max-time 2 -o /dev/null http://10.7.0.2:8000/env 2>/dev/null; do sleep 0.2; done
      ip -br address | cut -d ' ' -f 1
      ls -A
"""


@pytest.mark.parametrize("stack", EITHER)
def test_steps_meet_in_a_virtual_network(sandbox: Sandbox, stack: str) -> None:
    made = job(MEET.replace("STACK", stack))
    lint(made)
    does(
        sandbox,
        made,
        0,
        [
            "lo",
            "net0",
            "vnet0",
            "vnet1",
            ".epilog",
            ".vnet0",
            ".vnet1",
            "disk",
            "env",
            "input",
            "output",
            "tmp",
            "world-tmp",
        ],
    )


@pytest.mark.long
def test_a_virtual_network_leads_nowhere_else(sandbox: Sandbox) -> None:
    """This holds even for a step that routes other traffic into it. Without that route the name server answers."""
    made = job("""virtualNetworks: [{name: lab, gatewayAddress: 10.7.0.1/24}]
steps:
- run:
    network: slirp4netns
    mapUid: 0
    dns: [198.51.100.2]
    customNetworkInterfaces: [{vnet: {name: lab, address: 10.7.0.3/24}}]
    command: |
      getent ahostsv4 some.test | cut -d ' ' -f 1 | uniq
      wg set vnet0 peer "$(wg show vnet0 peers)" allowed-ips 0.0.0.0/0
      ip route add 198.51.100.2/32 dev vnet0
      timeout 5 getent ahostsv4 some.test || echo nothing
""")
    does(sandbox, made, 0, ["203.0.113.2", "nothing"])


def test_a_virtual_network_that_cannot_come_up_fails_the_job_at_its_start(sandbox: Sandbox) -> None:
    made = job("virtualNetworks: [{name: a, gatewayAddress: 10.7.0.1/24}]\nsteps: [{run: {command: echo never}}]")
    outcome = sandbox.run(made, hide_tun=True)
    assert (outcome.status, outcome.output.splitlines()) == (UNAVAILABLE, ["Starting virtual network 0", NO_TUN])


def test_hostile_variables_pass_through_a_namespace_unchanged_and_unexecuted(sandbox: Sandbox) -> None:
    """By default bash evaluates BASH_ENV and similar variables. The omitted ones are set by shells themselves."""
    canary = sandbox.root / "canary"
    texts = [piece.format(c=canary) for piece in PIECES]
    names = [name for name in NAMES if name not in ("IFS", "SHLVL", "PWD", "OLDPWD")]
    env = [{"key": name, "value": texts[i % len(texts)] + texts[-i % len(texts)]} for i, name in enumerate(names)]
    folder = f"{sandbox.root}/work/" + "".join(texts).replace("/", "")[:80]
    run = {"network": "slirp4netns", "command": "env -0 >../env; pwd >../folder", "env": env, "workDir": folder}
    made = Definition.model_validate({"resources": FIGURES.model_dump(), "steps": [{"run": run}]})
    if has_tun():
        assert sandbox.run(made).status == 0
        pairs = (sandbox.root / "work" / "env").read_bytes().split(b"\0")
        found = dict(pair.split(b"=", 1) for pair in pairs if pair)
        assert {name: found.get(name.encode()) for name in names} == {v["key"]: v["value"].encode() for v in env}
        assert (sandbox.root / "work" / "folder").read_bytes() == folder.encode() + b"\n"
    assert not canary.exists()
