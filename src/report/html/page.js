// Changes the theme; figures follow by their CSS properties.
(() => {
  "use strict";
  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const nameButton = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameButton();
  });
  prefersDark.addEventListener("change", nameButton);

  // The address can select a theme: report.html#dark.
  if (["#dark", "#light"].includes(location.hash)) root.dataset.theme = location.hash.slice(1);
  nameButton();
  root.dataset.rendered = "yes";
})();
