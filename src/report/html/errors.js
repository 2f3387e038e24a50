// Records script errors in an attribute of the page, for tests and for debugging.
(() => {
  const root = document.documentElement;
  const note = (message) => {
    root.dataset.scriptErrors = (root.dataset.scriptErrors ? root.dataset.scriptErrors + " | " : "") + message;
  };
  window.onerror = (message, source, line) => note(`${message} (line ${line})`);
  window.addEventListener("unhandledrejection", (event) => note(String(event.reason)));
})();
