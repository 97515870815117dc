# shellcheck shell=bash
# Installs the parts that a command needs and this machine lacks. It is silent and quick when nothing is missing.
#
# Debian packages are installed on the machine (tools/install-packages prevents their services from starting).
# Python packages are in .venv; uv, the provers and the log in .grid. npm packages are in contracts/node_modules and
# web/node_modules, and for tests in tests/clients/typescript/node_modules and tests/chain/hardhat/node_modules.
# `run` sources this file in the root of the checkout.

grid_packages=(
  slurmctld slurmd slurm-client slurmdbd slurm-wlm-mysql-plugin munge mariadb-server openssh-server postgresql nginx
  python3 python3-venv hpcc openmpi-bin fio python3-mpi4py # the last four measure clusters
  curl zip patchelf squashfs-tools # for jobs: input and output over HTTP; Apptainer, and images that it downloads
  git shellcheck # fetch modules, and check every script before it is stored
)
test_packages=(
  libatomic1 # for playwright's driver
  faketime # sets the clock of a supervisor
  docker-registry umoci skopeo busybox-static # images, and programs for them
  slirp4netns passt iproute2 wireguard-tools wireguard-go # networks of steps
  sudo # supervisors without root
  tcsh csh # login shells of sites
  iperf3 # a server that measures a connection
  nftables # limits on connections to slurmctld
  libpmix-dev # Slurm's PMIx plugin needs the library name that only this package has
)
scaled_packages=(redis-server) # the grid with several Prefect servers
serve_packages=(python3 python3-venv git shellcheck curl nginx) # a machine that only serves: no cluster, no database, no tests
# Ubuntu has chromium only as a snap. The tests use it where it is installed.
grep -q '^ID=ubuntu' /etc/os-release || test_packages+=(chromium)
setup_log=.grid/log/setup.log

say() { printf '%s\n' "$*" >&2; }

# die MESSAGE [EXIT STATUS]
die() {
  say "run: $1"
  exit "${2:-1}"
}

# ensure_installed COMMAND [FIRST ARGUMENT]: installs everything that ./run COMMAND needs.
ensure_installed() {
  command -v dpkg-query >/dev/null || die "this needs Debian 12 or Ubuntu 24.04, or a newer one: there is no dpkg"
  local -a packages=("${grid_packages[@]}")
  if [ "$1 ${2:-}" = "setup --serve" ]; then
    packages=("${serve_packages[@]}")
    set -- serve
  fi
  case "$1" in setup | test | lint) packages+=("${test_packages[@]}") ;; esac
  case "$1 ${2:-}" in "setup "* | "test "* | "bench scaled" | "up --scaled") packages+=("${scaled_packages[@]}") ;; esac
  command -v node >/dev/null && command -v npm >/dev/null || packages+=(nodejs npm)
  if [ -z "$(missing_packages "${packages[@]}")" ] && python_is_current && node_is_current "$1"; then
    fetch_programs "$1"
    return
  fi
  mkdir -p .grid/log || die ".grid cannot be written; does it belong to another account?"
  (
    flock 9
    install_packages "${packages[@]}"
    node_is_current "$1" || install_node "$1" &
    local node_job=$!
    python_is_current || install_python
    wait "$node_job"
  ) 9>.grid/setup.lock
  fetch_programs "$1"
}

# fetch_programs COMMAND: programs of other releases of Debian, which are not installed on the machine.
fetch_programs() {
  case "$1" in up | demo | test) fetch_apptainer ;; esac
  [ "$1" != test ] || fetch_debian
}

# Without these programs, their tests are skipped with a message.
fetch_debian() {
  [ ! -e .grid/debian/complete ] || return 0
  say "fetching promtool and systemd-analyze for tests"
  tools/fetch-debian >>"$setup_log" 2>&1 || say "they could not be fetched; their tests are skipped ($setup_log)"
}

# Without Apptainer, the one-machine grid runs no containers, and tests of containers are skipped with a message.
fetch_apptainer() {
  if command -v apptainer >/dev/null || [ -e .grid/apptainer/debs/complete ]; then return; fi
  say "fetching Apptainer for jobs in containers"
  tools/install-apptainer --download >>"$setup_log" 2>&1 ||
    say "Apptainer could not be had, no job runs in a container: $(tail -n 1 "$setup_log")"
}

# Sets a folder for the tools' caches, even where HOME is unset, missing or owned by another user.
use_a_home() {
  if [ ! -d "${HOME:-}" ] || [ ! -w "$HOME" ]; then
    export HOME=$PWD/.grid/home
    mkdir -p "$HOME" || die ".grid cannot be written; does it belong to another account?"
  fi
}

missing_packages() {
  dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' |
    grep -vxFf - <(printf '%s\n' "$@") || true
}

install_packages() {
  local -a missing root=()
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    may_sudo || die "root must install these, or you with sudo: ${missing[*]}"
    root=(sudo)
  fi
  say "installing Debian packages: ${missing[*]}"
  "${root[@]}" tools/install-packages "${missing[@]}" >>"$setup_log" 2>&1 ||
    die "they could not be installed (is there a network?): $(grep '^E: ' "$setup_log" | tail -1) The log is $setup_log"
}

# Whether sudo needs no password, or there is a terminal for it.
may_sudo() { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; }

# The settings of tools in pyproject.toml do not affect the installation.
python_stamp() { { sed '/^\[tool\.ruff/,$d' pyproject.toml && cat tools/project/pyproject.toml constraints.txt tools/uv.txt && pwd; } | sha256sum; }

python_is_current() { [ -x .venv/bin/python ] && [ "$(cat .venv/stamp 2>/dev/null)" = "$(python_stamp)" ]; }

install_python() {
  local uv=.grid/uv/bin/uv python=/usr/bin/python3
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "Python 3.11 or later is needed, as in Debian 12 and Ubuntu 24.04; $python is older"
  say "installing Python packages into .venv"
  {
    "$python" -m venv .grid/uv &&
      .grid/uv/bin/python -m pip install --require-hashes -r tools/uv.txt &&
      adopt_pip_index &&
      { venv_is_usable || "$uv" venv --clear --python "$python" .venv; } &&
      "$uv" pip sync --python .venv/bin/python --index-strategy unsafe-best-match --require-hashes constraints.txt &&
      "$uv" pip install --python .venv/bin/python --no-deps --no-build-isolation --editable . --editable tools/project &&
      compile_python
  } >>"$setup_log" 2>&1 ||
    die "the Python packages could not be installed: is there a network, or a package index? The log is $setup_log"
  python_stamp >.venv/stamp
}

# compile_python: keeps the bytecode of all modules. Without it, each process compiles all modules of Prefect at its start,
# where it may not write into their folders or PYTHONDONTWRITEBYTECODE is set. That is a third of the start.
compile_python() {
  .venv/bin/python -m compileall -q -j 0 .venv/lib blocks deepgrid deployments flows orchestration tasks
}

# ensure_prefect VERSION|newest: installs the project with another release of Prefect into .grid/prefect-VERSION. Only what
# that release needs differs from .venv.
ensure_prefect() {
  local uv=.grid/uv/bin/uv folder=.grid/prefect-$1 wanted="prefect==$1"
  [ -x "$uv" ] || die "nothing was set up here yet; ./run setup does that"
  [ "$1" != newest ] || wanted=$(allowed_prefect)
  say "installing $wanted into $folder"
  {
    adopt_pip_index &&
      { [ -x "$folder/bin/python" ] || "$uv" venv --python /usr/bin/python3 "$folder"; } &&
      "$uv" pip sync --python "$folder/bin/python" --index-strategy unsafe-best-match --require-hashes constraints.txt &&
      "$uv" pip install --python "$folder/bin/python" --no-deps --no-build-isolation --editable . --editable tools/project &&
      "$uv" pip install --python "$folder/bin/python" --index-strategy unsafe-best-match --upgrade-package prefect "$wanted"
  } >>"$setup_log" 2>&1 ||
    die "Prefect $1 could not be installed: is there a network, or such a release? The log is $setup_log"
}

# allowed_prefect: prints which releases of Prefect the project allows.
allowed_prefect() { sed -n 's/^  "\(prefect>[^"]*\)".*/\1/p' tools/project/pyproject.toml; }

# newest_prefect: prints the newest release of Prefect that the project allows, as `prefect==VERSION`. Installs nothing.
newest_prefect() {
  adopt_pip_index &&
    allowed_prefect | .grid/uv/bin/uv pip compile --quiet --no-deps --no-header --no-annotate --python-version 3.11 \
      --index-strategy unsafe-best-match -
}

# ensure_tool NAME: installs what tools/NAME.txt names into an environment of its own, .grid/NAME. The provers pin other
# versions than .venv; the notebook (Jupyter, matplotlib, TensorBoard) is for jobs of deep tests.
# The locks are made with: uv pip compile --no-header --generate-hashes --no-emit-index-url --universal
# --python-version 3.11 --index-strategy unsafe-best-match - -o tools/NAME.txt, with names on its standard input:
# halmos; slither-analyzer; jupyterlab, matplotlib and tensorboard.
ensure_tool() {
  mkdir -p .grid/log
  (
    flock 9
    tool_is_current "$1" || install_tool "$1"
  ) 9>.grid/setup.lock
}

tool_stamp() { { cat "tools/$1.txt" && pwd; } | sha256sum; }

tool_is_current() { [ "$(cat ".grid/$1/stamp" 2>/dev/null)" = "$(tool_stamp "$1")" ]; }

install_tool() {
  local uv=.grid/uv/bin/uv
  [ -x "$uv" ] || die "nothing was set up here yet; ./run setup does that"
  say "installing $1 into .grid/$1"
  {
    adopt_pip_index &&
      "$uv" venv --clear --python /usr/bin/python3 ".grid/$1" &&
      "$uv" pip sync --python ".grid/$1/bin/python" --index-strategy unsafe-best-match --require-hashes \
        --only-binary :all: "tools/$1.txt"
  } >>"$setup_log" 2>&1 ||
    die "$1 could not be installed: is there a network, or a package index? The log is $setup_log"
  tool_stamp "$1" >".grid/$1/stamp"
}

# A copied or moved checkout, or another Python, needs a new environment.
venv_is_usable() {
  grep -qsF "$PWD/.venv" .venv/bin/activate && .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'
}

# uv does not read pip's configuration. Every file is checked by its hash.
adopt_pip_index() {
  local line value
  while read -r line; do
    value=$(sed "s/^[^=]*='\(.*\)'$/\1/; s/\\\\n/ /g" <<<"$line" | xargs)
    case $line in
      *.index-url=*) export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$value} ;;
      *.extra-index-url=*) export UV_INDEX=${UV_INDEX:-$value} ;;
      *.find-links=*) export UV_FIND_LINKS=${UV_FIND_LINKS:-${value// /,}} ;;
      *.cert=*) export SSL_CERT_FILE=${SSL_CERT_FILE:-$value} ;;
    esac
  done < <(.grid/uv/bin/python -m pip config list)
}

# node_folders COMMAND: the folders with npm packages that ./run COMMAND needs.
node_folders() {
  echo web
  [ "$1" = serve ] || echo contracts
  case "$1" in setup | test | lint) echo tests/clients/typescript ;; esac
  case "$1" in setup | test) echo tests/chain/hardhat ;; esac
}

node_stamp() { sha256sum <"$1/package-lock.json"; }

folder_is_current() { [ "$(cat "$1/node_modules/stamp" 2>/dev/null)" = "$(node_stamp "$1")" ]; }

node_is_current() {
  local folder
  for folder in $(node_folders "$1"); do
    folder_is_current "$folder" || return 1
  done
}

install_node() {
  local folder
  node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' || die "node 18 or later is needed; $(command -v node) is older"
  for folder in $(node_folders "$1"); do
    ! folder_is_current "$folder" || continue
    say "installing npm packages into $folder/node_modules"
    npm ci --prefix "$folder" --no-audit --no-fund >>"$setup_log" 2>&1 ||
      die "the npm packages could not be installed: is there a network, or a registry? The log is $setup_log"
    node_stamp "$folder" >"$folder/node_modules/stamp"
  done
}
