# shellcheck shell=bash
# Sourced by test.sh and demo.sh: installs the Debian packages that Quern is built with.

quern_packages=(
  g++ cmake ninja-build pkg-config
  llvm-19-dev libtbb-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev libspdlog-dev libxxhash-dev
  libgtest-dev librapidcheck-dev libbenchmark-dev python3
)

# Does nothing, and needs no network, when all of them are there.
install_packages() {
  local package missing=()
  if ! command -v dpkg-query >/dev/null; then
    echo "This is not Debian or Ubuntu. Quern needs the equivalents of: ${quern_packages[*]}" >&2
    return
  fi
  for package in "${quern_packages[@]}"; do
    if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
      missing+=("$package")
    fi
  done
  if [ ${#missing[@]} -eq 0 ]; then
    return
  fi

  echo "Installing ${missing[*]}"
  local as_root=(env DEBIAN_FRONTEND=noninteractive)
  if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo "${as_root[@]}")
  fi
  "${as_root[@]}" apt-get -qq update
  "${as_root[@]}" apt-get -qq install --no-install-recommends "${missing[@]}" >/dev/null
}

# build PRESET [TARGET]: configures it and builds everything, or that target alone.
build() {
  cmake --preset "$1" >/dev/null
  cmake --build --preset "$1" --target "${2:-all}"
}
