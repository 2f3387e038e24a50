// Draws the figures in the page's JSON, in the colours of the current theme.
(() => {
  "use strict";
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const isTouched = window.matchMedia("(pointer: coarse)").matches;

  // A custom property holds light-dark(...), which resolves to one colour only where it is used.
  const probe = document.body.appendChild(document.createElement("span"));
  probe.hidden = true;
  const colour = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };

  // Every text that begins with "--" names a colour.
  const themed = (value) => {
    if (typeof value === "string") return value.startsWith("--") ? colour(value) : value;
    if (Array.isArray(value)) return value.map(themed);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, themed(inner)]));
  };

  const axis = (own) => ({
    gridcolor: "--grid", linecolor: "--line", zeroline: false, ticks: "outside", tickcolor: "--line", ticklen: 4,
    fixedrange: isTouched, automargin: true, ...own,
    title: { standoff: 12, font: { size: 13 }, ...own.title },
  });

  const layoutOf = (figure) => {
    const own = figure.layout;
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, autosize: true,
      margin: { l: 52, r: 14, t: isTouched ? 12 : 30, b: 48 }, dragmode: isTouched ? false : "zoom",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: "--ink" },
      hoverlabel: { bgcolor: "--card", bordercolor: "--line", font: { color: "--ink" }, align: "left" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: "--muted", activecolor: "--ink" },
      ...own,
    };
    for (const name of ["xaxis", "yaxis"]) {
      if (own[name]) layout[name] = axis(own[name]);
    }
    return themed(layout);
  };

  // No tools on touch screens or over a flow's headings.
  const configOf = (figure) => ({
    responsive: true, displaylogo: false, displayModeBar: isTouched || !figure.layout.xaxis ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "zoomIn2d", "zoomOut2d"], toImageButtonOptions: { format: "svg" },
  });

  // On narrow screens, a flow has short labels and small headings.
  const isNarrow = (place) => place.clientWidth < 560;
  const narrowed = (figure, place) => {
    if (!figure.short_labels || !isNarrow(place)) return figure;
    const [trace] = figure.data;
    const annotations = figure.layout.annotations.map((heading) => ({ ...heading, font: { size: 10 } }));
    return {
      data: [{ ...trace, node: { ...trace.node, label: figure.short_labels }, textfont: { size: 11 } }],
      layout: { ...figure.layout, annotations },
    };
  };

  const draw = () => Promise.all(Array.from(document.querySelectorAll("[data-figure]"), (place) => {
    const figure = narrowed(figures[place.dataset.figure], place);
    place.dataset.narrow = isNarrow(place);
    return Plotly.react(place, themed(figure.data), layoutOf(figure), configOf(figure));
  }));

  const button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const nameButton = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  const restyle = () => { nameButton(); return draw(); };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    restyle();
  });
  prefersDark.addEventListener("change", restyle);
  window.addEventListener("resize", () => {
    const places = Array.from(document.querySelectorAll("[data-figure]"));
    if (places.some((place) => String(isNarrow(place)) !== place.dataset.narrow)) draw();
  });

  // The address can select a theme: report.html#dark.
  if (["#dark", "#light"].includes(location.hash)) root.dataset.theme = location.hash.slice(1);
  restyle().then(() => { root.dataset.rendered = "yes"; });
})();
