#!/usr/bin/env bash
# The page in Debian's chromium: tests/browser/run.sh BUILD-FOLDER [PAGE-FOLDER]. Without the second it is the
# page that the build has inside. `tests/browser/run.sh --screens FOLDER BUILD-FOLDER [PAGE-FOLDER]` makes pictures
# instead of tests (screens.mjs). Exit: 0 passed, 1 not, 75 skipped, with the
# reason on the last line. What became of each test lies in the file that STEPWELL_TEST_ROWS names, as rows.py writes it.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
screens=
if [[ $1 == --screens ]]; then
  screens=$(realpath "$2")
  shift 2
fi
build=$(cd "$1" && pwd)
skip() { echo "skipped: $1"; exit 75; }

chromium=$(command -v chromium) || skip "chromium is not installed (apt-get install --no-install-recommends chromium, 80 MB)"
command -v node >/dev/null || skip "node is not installed"
playwright=$root/client/web/node_modules/playwright-core/index.mjs
[[ -f $playwright && -f $root/client/web/node_modules/axe-core/axe.min.js ]] || (cd "$root/client/web" && npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1) || skip "npm could not fetch playwright-core (no network?)"
library=$(compgen -G "$build/client/recorder/libstepwell_recorder.so.*" | head -n 1)
export STEPWELL_BROWSER_TEST=$build/bin:${2:+$(realpath "$2")}:$playwright:$chromium:$library
if [[ -n $screens ]]; then
  node "$here/screens.mjs" "$screens"
else
  python3 "$here/rows.py" "${STEPWELL_TEST_ROWS:-/dev/null}" "$here"/*_test.mjs
fi
