#!/bin/sh
# Run the Docker test for real: with the engine that answers, else with one of our own (as root).
#
# An engine of our own listens on a private socket, keeps its data in a temporary folder, and is
# ended by its process id. TALLYSTICK_DOCKER_DATA keeps its data (images) between runs.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}

say() { printf '%s\n' "$*" >&2; }

engine=''
scratch=$(mktemp -d)

finish() {
    if [ -n "$engine" ]; then
        kill "$engine" 2>/dev/null || true
        wait "$engine" 2>/dev/null || true
        umount "$scratch"/exec/netns/* 2>/dev/null || true
    fi
    rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT TERM

start_engine() {
    command -v dockerd >/dev/null && command -v iptables >/dev/null || {
        say "no Docker engine answers and dockerd is missing:" \
            "apt-get install --no-install-recommends docker.io iptables debootstrap"
        exit 1
    }
    [ "$(id -u)" = 0 ] || { say "no Docker engine answers, and only root can start one"; exit 1; }
    export DOCKER_HOST="unix://$scratch/docker.sock"
    dockerd --data-root "${TALLYSTICK_DOCKER_DATA:-$scratch/data}" --exec-root "$scratch/exec" \
        -H "$DOCKER_HOST" --pidfile "$scratch/docker.pid" >"$scratch/dockerd.log" 2>&1 &
    engine=$!
    tries=0
    until docker info >/dev/null 2>&1; do
        tries=$((tries + 1))
        kill -0 "$engine" 2>/dev/null && [ "$tries" -lt 150 ] ||
            { say "the Docker engine did not start:"; tail -n 5 "$scratch/dockerd.log" >&2; exit 1; }
        sleep 0.2
    done
    say "a Docker engine of our own is up (pid $engine)"
}

docker info >/dev/null 2>&1 || start_engine
PYTHON=$python "$here/build.sh"
cd "$root"
"$python" -m pytest -m docker -v "$@"
