#!/usr/bin/env bash
# Installs the named sections of deploy/packages.txt that this machine lacks: install_packages.sh build run
# Runs as root or through sudo; does nothing, and needs neither, where all is installed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
list=$here/packages.txt
cluster_policy=/etc/postgresql-common/createcluster.d/stepwell-install.conf

usage() {
  cat <<'USAGE'
Usage: deploy/install_packages.sh [--missing] SECTION...
Installs the packages of these sections of deploy/packages.txt: build, run, test, torch, python39, browser.
  --missing   only print the names that are missing
Exit: 0 all installed, 64 wrong use, 69 something cannot be installed here (the message says what to do).
USAGE
}

# Names of one section, those left out whose "?command" already answers.
section_packages() {
  awk -v section="[$1]" '
    /^[[:space:]]*(#|$)/ { next }
    /^\[/ { inside = ($1 == section); found = found || inside; next }
    inside { print $1, $2 }
    END { exit !found }' "$list"
}

missing_packages() {
  local section name alternative
  for section in "$@"; do
    section_packages "$section" >/dev/null || { echo "no section [$section] in $list; there are: $(grep '^\[' "$list" | tr '\n' ' ')" >&2; exit 64; }
    while read -r name alternative; do
      if [[ -n $alternative ]] && command -v "${alternative#\?}" >/dev/null 2>&1; then continue; fi
      installed "$name" || echo "$name"
    done < <(section_packages "$section")
  done | sort -u
}

installed() {
  [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# stderr: what is missing and the command that a person with the right to do it would type.
refuse() {
  echo "cannot install what is missing: $1" >&2
  echo "missing: ${missing[*]}" >&2
  echo "do this as root, then run the command again:" >&2
  echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 69
}

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

# Debian's postgresql-15 makes and starts a cluster on port 5432 when it is first installed. Stepwell
# starts a private one of its own, so for the time of this installation only, and only where
# PostgreSQL is new to the machine, the package is asked not to. A person's own setting is untouched.
hold_back_cluster() {
  [[ " ${missing[*]} " == *" postgresql-15 "* ]] || return 0
  as_root mkdir -p "$(dirname "$cluster_policy")"
  printf 'create_main_cluster = false\n' | as_root tee "$cluster_policy" >/dev/null
  trap 'as_root rm -f "$cluster_policy"; as_root rmdir --ignore-fail-on-non-empty "$(dirname "$cluster_policy")" 2>/dev/null || true' EXIT
}

only_missing=no
[[ ${1:-} == --help || ${1:-} == -h ]] && { usage; exit 0; }
[[ ${1:-} == --missing ]] && { only_missing=yes; shift; }
(($# > 0)) || { usage >&2; exit 64; }
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "this is no Debian system (no apt-get). Install by hand what $list names, for sections: $*" >&2
  exit 69
fi

names=$(missing_packages "$@")
mapfile -t missing < <(printf '%s' "$names")
if [[ $only_missing == yes ]]; then printf '%s' "${names:+$names$'\n'}"; exit 0; fi
if ((${#missing[@]} == 0)); then
  echo "packages: all of [$*] installed"
  exit 0
fi
if ((EUID != 0)); then
  command -v sudo >/dev/null || refuse "you are not root and there is no sudo"
  sudo -n true 2>/dev/null || [[ -t 0 ]] || refuse "you are not root and sudo asks for a password, but there is no terminal to ask on"
fi

echo "packages: installing ${#missing[@]}: ${missing[*]}"
hold_back_cluster
export DEBIAN_FRONTEND=noninteractive
as_root apt-get update -q || echo "apt-get update failed; trying with the lists that are there" >&2
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" ||
  refuse "apt-get install failed (its message is above: network, disk space or package sources)"
