#!/usr/bin/env bash
# Makes the wire contract of this tree the one that later trees must not break: kept.binpb.gz.
# For a release, after the breaking check has passed; needs `npm ci --ignore-scripts` in this folder.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
"$here/node_modules/.bin/buf" breaking proto --against "$here/kept.binpb.gz"
"$here/node_modules/.bin/buf" build proto --as-file-descriptor-set -o "$here/kept.binpb.gz"
echo "kept: tests/proto/kept.binpb.gz"
