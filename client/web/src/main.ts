// The page: what index.html shows already (the top bar, the bar that says when the master does not answer) comes to life,
// with the page that the address names.
import { onReach } from "./api";
import { formatView, parseView, type View } from "./core/view_state";
import { isoText } from "./core/time_text";
import { closeChoicesOnClick } from "./choice";
import { fill, h } from "./dom";
import type { Go, Page } from "./page";
import { AdminPage } from "./pages/admin_page";
import { ComparePage } from "./pages/compare_page";
import { MissingPage } from "./pages/missing_page";
import { TrialPage } from "./pages/trial_page";
import { TrialsPage } from "./pages/trials_page";
import { keepAsking } from "./reach";
import { onTheme, theme, toggleTheme } from "./theme";

/** Of index.html. */
function there(selector: string): HTMLElement {
  const found = document.querySelector<HTMLElement>(selector);
  if (!found) throw new Error(`index.html has no ${selector}`);
  return found;
}

const main = there("#main");
const lost = there("#lost");
const links = [...document.querySelectorAll<HTMLElement>("[data-pages]")].map((element) => ({ element, pages: element.dataset["pages"]?.split(" ") ?? [] }));

let page: Page | null = null;

const go: Go = (view, how) => {
  const hash = formatView(view);
  if (how === "push") history.pushState(null, "", hash);
  else history.replaceState(null, "", hash);
  route();
};

function make(view: View): Page {
  switch (view.page) {
    case "trials": return new TrialsPage(view, go);
    case "trial": return new TrialPage(view, go);
    case "compare": return new ComparePage(view, go);
    case "admin": return new AdminPage(view, go);
    case "missing": return new MissingPage(view);
  }
}

function route(): void {
  const view = parseView(location.hash);
  for (const link of links) {
    if (link.pages.includes(view.page)) link.element.setAttribute("aria-current", "page");
    else link.element.removeAttribute("aria-current");
  }
  if (page?.update(view)) return;
  const first = page === null;
  page?.destroy();
  page = make(view);
  fill(main, page.element);
  document.title = `${page.title} · Stepwell`;
  if (!first) main.focus();
}

function watchReach(): void {
  let since = "";
  onReach((answers) => {
    if (answers) {
      lost.hidden = true;
      since = "";
      return;
    }
    if (since === "") since = isoText(Date.now() * 1000).slice(11, 19);
    lost.textContent = `Lost the connection to the master at ${since} UTC. What you see is as of then; it is asked again by itself.`;
    lost.hidden = false;
  });
  keepAsking();
}

function themeButton(): HTMLElement {
  const button = h("button", { type: "button" });
  const show = (): void => {
    button.textContent = theme() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", theme() === "dark" ? "Switch to the light theme" : "Switch to the dark theme");
  };
  button.addEventListener("click", toggleTheme);
  onTheme(show); // the system's changes, too
  show();
  return button;
}

closeChoicesOnClick();
// As an address "#main" would name a page.
there(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
there(".top").append(themeButton());
watchReach();
addEventListener("hashchange", route);
addEventListener("popstate", route);
route();
