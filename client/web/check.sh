#!/usr/bin/env bash
# Installs the tools by the lock file, tests the cores, builds the page anew and compares it with dist/,
# byte by byte. Exit: 0 the same, 1 not, 75 npm could not fetch the tools.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
if [[ ! node_modules/.package-lock.json -nt package-lock.json ]]; then
  npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 || exit 75
fi
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
node build.mjs "$built/dist" || exit 1
node test.mjs || exit 1
diff -r "$built/dist" dist >/dev/null && exit 0
echo "client/web/dist is not what its sources build: run 'npm ci --ignore-scripts && npm run build' in client/web, and commit dist/"
diff -rq "$built/dist" dist
exit 1
