// Draws the charts of the page, and draws them again for another sensor, by night, and on paper.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const night = window.matchMedia("(prefers-color-scheme: dark)");
  const day = { ink: "#1f2328", line: "#e1e5ea", paper: "#ffffff" };
  const dark = { ink: "#e6e9ec", line: "#333b44", paper: "#1f252c" };
  const paperWidth = 680; // pixels: as wide as a printed page
  const settings = { displayModeBar: false };
  const places = Object.keys(data.charts).map((name) => [name, document.getElementById(`chart-${name}`)]);
  let chosen = data.chosen;
  let isPrinting = false;

  for (const chart of Object.values(data.charts)) {
    // Blue is hard to see by night, as a line and as a veil.
    const lines = JSON.stringify(chart.data).replaceAll("#0072b2", "#56b4e9");
    chart.nightly = JSON.parse(lines.replaceAll("rgba(0,114,178", "rgba(86,180,233"));
    // All sensors' numbers of a trace, as one long row of 32-bit numbers.
    for (const choice of Object.values(chart.choices)) {
      const bytes = Uint8Array.from(atob(choice.bytes), (letter) => letter.charCodeAt(0));
      choice.numbers = new Float32Array(bytes.buffer);
      delete choice.bytes;
    }
  }

  function traces(chart, colours) {
    return (colours === dark ? chart.nightly : chart.data).map((trace, place) => {
      const drawn = { ...trace };
      const choice = chart.choices[place];
      if (choice) {
        // A plain list: plotly may keep what it is given.
        drawn.y = Array.from(choice.numbers.subarray(chosen * choice.points, (chosen + 1) * choice.points));
      }
      if (trace.meta === "ink") {
        drawn.line = { ...trace.line, color: colours.ink };
        drawn.marker = { ...trace.marker, color: colours.ink };
      }
      return drawn;
    });
  }

  function layout(chart, colours) {
    const axis = { gridcolor: colours.line, linecolor: colours.line, tickcolor: colours.line };
    const result = {
      ...chart.layout,
      autosize: !isPrinting,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colours.ink, size: 12, family: getComputedStyle(document.body).fontFamily },
      hoverlabel: { bgcolor: colours.paper, bordercolor: colours.line, font: { color: colours.ink } },
      xaxis: { ...chart.layout.xaxis, ...axis },
      yaxis: { ...chart.layout.yaxis, ...axis },
    };
    if (isPrinting) result.width = paperWidth;
    if (chart.has_unit) result.yaxis.title = { text: data.units[chosen] };
    return result;
  }

  function draw(wanted = () => true) {
    const colours = night.matches && !isPrinting ? dark : day;
    for (const [name, place] of places) {
      const chart = data.charts[name];
      if (wanted(chart)) Plotly.react(place, traces(chart, colours), layout(chart, colours), settings);
    }
  }

  const selectors = [...document.querySelectorAll(".sensor-choice")];
  function choose(sensor) {
    chosen = sensor;
    for (const selector of selectors) selector.value = String(sensor);
    const name = selectors[0].selectedOptions[0].textContent;
    for (const place of document.querySelectorAll(".chosen-name")) place.textContent = name;
    draw((chart) => Object.keys(chart.choices).length > 0);
  }

  draw();
  for (const selector of selectors) selector.addEventListener("change", () => choose(Number(selector.value)));
  for (const [name, place] of places) {
    const sensors = data.charts[name].data.findIndex((trace) => trace.meta === "sensors");
    if (sensors < 0) continue;
    place.on("plotly_click", (event) => {
      const point = event.points.find((one) => one.curveNumber === sensors);
      if (!point) return;
      choose(point.pointNumber);
      document.getElementById("forecast").scrollIntoView();
    });
  }
  night.addEventListener("change", () => draw());
  const watcher = new ResizeObserver((entries) => {
    if (isPrinting) return;
    for (const entry of entries) Plotly.Plots.resize(entry.target);
  });
  for (const [, place] of places) watcher.observe(place);

  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const part of folded) part.open = true;
    isPrinting = true;
    draw();
  });
  window.addEventListener("afterprint", () => {
    for (const part of folded) part.open = false;
    isPrinting = false;
    draw();
  });
})();
