// Saves charts: as SVG with the colours of a light page, and their values as CSV.
(() => {
  "use strict";
  const probe = document.body.appendChild(document.createElement("span"));
  probe.hidden = true;
  probe.style.colorScheme = "light";
  const light = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const standalone = (chart) => {
    const figure = chart.querySelector(".wide svg").cloneNode(true);
    const [width, height] = ["width", "height"].map((name) => Number(figure.getAttribute(name)) + 24);
    figure.setAttribute("viewBox", `-12 -12 ${width} ${height}`);
    figure.setAttribute("width", width);
    figure.setAttribute("height", height);
    const svg = new XMLSerializer().serializeToString(figure);
    const ground = `<rect x="-12" y="-12" width="${width}" height="${height}" fill="#ffffff"/>`;
    return svg.replace(/var\((--[\w-]+)\)/g, (_, name) => light(name)).replace(">", ">" + ground);
  };
  const forms = {
    svg: (chart) => [standalone(chart), "image/svg+xml"],
    csv: (chart) => [chart.querySelector(".values").textContent, "text/csv"],
  };
  const save = (chart, form) => {
    const [text, type] = forms[form](chart);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = `${chart.dataset.name}.${form}`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  for (const chart of document.querySelectorAll(".chart[data-name]")) {
    chart.querySelector(".save").hidden = false;
    for (const button of chart.querySelectorAll("[data-save]")) {
      button.addEventListener("click", () => save(chart, button.dataset.save));
    }
  }
  window.flashpathSaved = (name, form) => forms[form](document.querySelector(`.chart[data-name="${name}"]`))[0];
})();
