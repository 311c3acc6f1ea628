// Runs before anything is painted, and alone: what index.html shows while the script loads has the person's theme.
import { keptTheme } from "./kept_theme";

const chosen = keptTheme();
if (chosen) document.documentElement.dataset["theme"] = chosen;
