// Light and dark: as the system says, until the switch says otherwise. Colours stand in base.css alone.

const KEPT = "candor-theme";
const night = window.matchMedia("(prefers-color-scheme: dark)");
const probe = document.createElement("span");
const listeners = [];

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : night.matches;
}

/** Makes a button the switch between light and dark. */
export function startTheme(button) {
  probe.hidden = true;
  document.body.append(probe);
  const kept = localStorage.getItem(KEPT);
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
  const tell = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `${button.textContent} colours`);
    for (const listener of listeners) listener();
  };
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(KEPT, theme);
    tell();
  });
  night.addEventListener("change", tell);
  tell();
}

/** Calls `listener` whenever the colours have changed. */
export function onTheme(listener) {
  listeners.push(listener);
}

/** Returns a colour of the style sheet, such as `--ink`, as `rgb(…)` in the present theme. */
export function colour(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

/** Returns a colour of the style sheet with some transparency; `share` is how much covers. */
export function veil(name, share) {
  return colour(name).replace(/^rgb\((.*)\)$/, `rgba($1, ${share})`);
}
