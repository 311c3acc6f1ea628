#!/usr/bin/env bash
# The HTTP port as Connect's own clients see it: tests/web/run.sh BUILD-FOLDER. Fetches them once, by lock
# files with checksums: those of another release have a folder of their own. Exit 75 where they cannot be fetched.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${1:?the folder of a build, such as build/release}
build=$(cd "$build" && pwd)

for folder in "$here/newer" "$here"; do
  cd "$folder"
  if ! [[ node_modules/.package-lock.json -nt package-lock.json ]]; then
    npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 || exit 75
  fi
done
page=$here/../../client/web
[[ -f $page/node_modules/@connectrpc/connect-web/package.json ]] || (cd "$page" && npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1) || exit 75
CONNECT_STAND=$build/bin/connect_stand exec node --test .
