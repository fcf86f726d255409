#!/bin/sh
# Build the Kafka image on this machine, from the cached jars; DOCKER_HOST names the engine.
#
# Usage: build.sh [IMAGE]      default: $TALLYSTICK_KAFKA_IMAGE, or tallystick/kafka:VERSION
# The base image is taken from the engine or its registry; where no registry can be reached it
# is made with debootstrap (as root) from the mirror that apt is set up with.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
base=${BASE_IMAGE:-debian:bookworm-slim}
suite=bookworm

say() { printf '%s\n' "$*" >&2; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT INT TERM

image=${1:-$(cd "$root" && "$python" -c 'from ops.broker.docker import image; print(image())')}

make_base() {
    command -v debootstrap >/dev/null || {
        say "no registry gives $base and debootstrap is missing (apt-get install debootstrap)"
        exit 1
    }
    mirror=$(apt-get indextargets --format '$(SITE)' "Codename: $suite" | head -n 1)
    say "no registry gives $base: making it with debootstrap"
    debootstrap --variant=minbase "$suite" "$scratch/root" "$mirror" >"$scratch/debootstrap.log" ||
        { tail -n 5 "$scratch/debootstrap.log" >&2; exit 1; }
    tar -C "$scratch/root" -c . | docker import - "$base" >/dev/null
    rm -rf "$scratch/root"
}

docker image inspect "$base" >/dev/null 2>&1 ||
    timeout 30 docker pull -q "$base" >/dev/null 2>&1 ||
    make_base

mkdir "$scratch/context"
cp "$here/Dockerfile" "$here/start-kafka" "$scratch/context/"
cd "$root"
libs=$("$python" -c 'from ops.broker import jars; print(jars.resolve())')
cp -R "$libs" "$scratch/context/libs"
"$python" - >"$scratch/context/cluster.properties" <<'EOF'
from ops.broker.kraft import cluster_settings

print("".join(f"{name}={value}\n" for name, value in cluster_settings(1, 1).items()), end="")
EOF

say "building $image"
docker build -q --network host --build-arg "BASE=$base" -t "$image" "$scratch/context"
