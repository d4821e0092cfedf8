// Dark or light as the system has it, unless the reader chose. Runs before the page is drawn, so that nothing flashes.
"use strict";
(() => {
  const KEY = "context_builder.theme";
  const root = document.documentElement;
  const apply = (theme) => {
    if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  };
  try {
    apply(localStorage.getItem(KEY));
  } catch {
    // A browser that keeps nothing shows what the system says.
  }
  addEventListener("DOMContentLoaded", () => {
    const toggle = document.querySelector("[data-theme-toggle]");
    if (!toggle) return;
    toggle.hidden = false;
    toggle.addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      const chosen = dark ? "light" : "dark";
      apply(chosen);
      try {
        localStorage.setItem(KEY, chosen);
      } catch {
        // It holds for this page, then.
      }
    });
  });
})();
