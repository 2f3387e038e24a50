// Script errors are written where a test, or a curious reader, can see them.
(() => {
  const root = document.documentElement;
  const note = (message) => {
    root.dataset.scriptErrors = (root.dataset.scriptErrors ? root.dataset.scriptErrors + " | " : "") + message;
  };
  window.onerror = (message, source, line) => note(`${message} (line ${line})`);
  window.addEventListener("unhandledrejection", (event) => note(String(event.reason)));
})();
