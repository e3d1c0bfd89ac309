// The charts of one sensor, drawn by plotly, which takes texts for a small kind of HTML: what comes from outside is
// escaped.

import { moment, MOST_TICKS, namedAxis, span, timeAxis } from "./clock.js";
import { colour, veil } from "./theme.js";
import { inUnit, percent, sentence } from "./words.js";

export const COMPONENTS = {
  background: ["background", "--blue", "circle"],
  accumulation: ["accumulation", "--orange", "square"],
  release: ["release", "--green", "triangle-up"],
  shock: ["shock", "--vermilion", "diamond"],
};
export const GATES = {
  accumulation: ["accumulation", "--orange", "circle"],
  release: ["release", "--green", "square"],
  shock_current: ["shock, own background", "--vermilion", "diamond"],
  shock_following: ["shock, next background", "--purple", "triangle-up"],
};
export const BRANCHES = {
  functional: ["own past and sensors alike", "--blue"],
  forward: ["along the edges", "--orange"],
  reverse: ["against the edges", "--green"],
};
export const PARTS = {
  usual: ["usual", "--blue"],
  storage: ["storage", "--green"],
  shock: ["shock", "--vermilion"],
  arrived: ["arrived before", "--soft"],
  own: ["own, beside these", "--purple"],
  arrivals: ["along edges", "--orange"],
  rest: ["left over on average", "--soft"],
  alike: ["sensors that behave alike", "--link"],
  learned: ["learned correction", "--ink"],
  blend: ["simple rules", "--soft"],
};
const LETTER = 7; // pixels
const SETTINGS = { displayModeBar: false, responsive: true };
let library = null;

/** Returns plotly, which is fetched when it is first needed. */
export function loadPlotly() {
  library ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    const tell = () => {
      if (window.Plotly) return done(window.Plotly);
      library = null; // the next chart tries again
      script.remove();
      return failed(new Error("the chart cannot be drawn: the service did not send the drawing library"));
    };
    script.src = "/static/plotly.min.js";
    script.addEventListener("load", tell);
    script.addEventListener("error", tell);
    document.head.append(script);
  });
  return library;
}

/** Draws a chart, or says in its place why not; one that is folded waits until it is opened. */
export async function drawOrTell(place, drawing) {
  try {
    if (place.clientWidth) await drawing();
  } catch (error) {
    place.textContent = sentence(error); // words and tables still tell the rest
  }
}

async function draw(place, traces, across, up, layout = {}) {
  const plotly = await loadPlotly();
  if (!place.isConnected) return; // somebody went on while it was fetched
  const [ink, line] = [colour("--ink"), colour("--line")];
  const axis = { gridcolor: line, linecolor: line, zeroline: false, automargin: true, fixedrange: true };
  const title = (text) => ({ text: escaped(text), font: { size: 12, color: colour("--soft") }, standoff: 10 });
  const full = {
    margin: { l: 8, r: 12, t: 8, b: 8 },
    height: 300,
    dragmode: false,
    hovermode: "x unified",
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink, size: 12, family: getComputedStyle(document.body).fontFamily },
    hoverlabel: { bgcolor: colour("--card"), bordercolor: line, font: { color: ink } },
    legend: { orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom", traceorder: "normal" },
    ...layout,
    xaxis: { ...axis, title: title(across), ...layout.xaxis },
    yaxis: { ...axis, title: title(up), ...layout.yaxis },
  };
  await plotly.react(place, traces, full, SETTINGS);
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Draws readings, forecast with its interval, and what happened. */
export function drawForecast(place, { history, forecast, unit, clock }) {
  const axis = timeAxis([...history.times, ...forecast.steps], clock);
  const steps = axis.names(forecast.steps);
  const traces = [];
  if (forecast.lower.some((value) => value !== null)) {
    const edge = { x: steps, mode: "lines", line: { width: 0, color: colour("--blue") }, hovertemplate: "%{y:.6~g}" };
    const name = `${percent(forecast.coverage)} interval`;
    traces.push({ ...edge, y: forecast.lower, name: "at least", showlegend: false });
    const filled = { fill: "tonexty", fillcolor: veil("--blue", 0.22) };
    traces.push({ ...edge, y: forecast.upper, name, ...filled, hovertemplate: "%{y:.6~g}<extra>at most</extra>" });
  }
  const line = (name, x, y, look) => ({ name, x, y, hovertemplate: "%{y:.6~g}", ...look });
  const readings = { mode: "lines", line: { color: colour("--ink"), width: 1.6 } };
  traces.push(line("readings", axis.names(history.times), history.values, readings));
  const ahead = { mode: "lines", line: { color: colour("--blue"), width: 2.6 } };
  traces.push(line("forecast", steps, forecast.forecast, ahead));
  if (forecast.observed.some((value) => value !== null)) {
    const look = { mode: "lines+markers", line: { color: colour("--vermilion"), width: 1.8 }, marker: { size: 6 } };
    traces.push(line("what happened", steps, forecast.observed, look));
  }
  const start = axis.place(forecast.steps[0]);
  const border = { type: "line", xref: "x", yref: "paper", x0: start, x1: start, y0: 0, y1: 1 };
  const shapes = [{ ...border, line: { color: colour("--soft"), width: 1, dash: "dot" } }];
  return draw(place, traces, axis.title, unit || "reading", { height: 340, shapes, xaxis: axis.layout });
}

/**
 * Draws how strong the four components were in each patch of the past. Each is a line of its own: sizes of states do not
 * add up, so that the height of a stack would say nothing.
 */
export function drawComponents(place, { patches, components, clock }) {
  return drawLines(place, patches, clock, { looks: COMPONENTS, heights: components, format: "%{y:.3~g}" }, {
    up: "strength, without unit", yaxis: { rangemode: "tozero" },
  });
}

/** Draws how far the gates were open in each patch of the past. */
export function drawGates(place, { patches, gates, clock }) {
  return drawLines(place, patches, clock, { looks: GATES, heights: gates, format: "%{y:.2f}" }, {
    up: "gate: 0 shut, 1 open", yaxis: { range: [-0.03, 1.03] },
  });
}

function drawLines(place, patches, clock, { looks, heights, format }, { up, yaxis }) {
  const names = patches.map((patch) => span(patch, clock));
  const known = Object.entries(looks).filter(([name]) => heights[name]); // where rain stands for shocks, some are not
  const traces = known.map(([name, [words, tone, symbol]]) => ({
    x: names, y: heights[name], name: words, mode: "lines+markers", line: { color: colour(tone) },
    marker: { symbol, size: 8 }, hovertemplate: format,
  }));
  const across = "patch of the past, first to last reading (local time)";
  return draw(place, traces, across, up, { xaxis: categories(place, patches, names, clock), yaxis });
}

/** Draws how much each branch of the network counts in each part of the forecast; the shares sum to 100 %. */
export function drawFusion(place, { fusion, clock }) {
  const names = fusion.map((patch) => span(patch, clock));
  const traces = Object.entries(BRANCHES).map(([branch, [words, tone]]) => ({
    type: "bar", name: words, x: names, y: fusion.map((patch) => 100 * patch[branch]), marker: { color: colour(tone) },
    hovertemplate: "%{y:.0f} %",
  }));
  const xaxis = categories(place, fusion, names, clock);
  const layout = { barmode: "stack", bargap: 0.3, xaxis, yaxis: { range: [0, 100.5] } };
  const across = "part of the forecast, first to last step (local time)";
  return draw(place, traces, across, "share in the forecast [%]", layout);
}

/** Draws the parts of a forecast as a stack of changes from the last reading. */
export function drawAccount(place, { times, forecast, account, columns, unit, clock }) {
  const names = times.map((time) => moment(time, clock, { hasYear: false }));
  const firsts = columns.filter(({ kind }, place) => columns.findIndex((one) => one.kind === kind) === place);
  const bars = columns.map((column) => ({
    type: "bar", name: PARTS[column.kind][0], x: names, y: column.values, legendgroup: column.kind,
    showlegend: firsts.includes(column), marker: { color: colour(PARTS[column.kind][1]) },
    hovertemplate: "%{y:.3~g}",
  }));
  const change = forecast.map((value) => value - account.last);
  const line = { type: "scatter", name: "forecast", x: names, y: change, line: { color: colour("--ink") } };
  const patches = times.map((time) => ({ start: time, end: time }));
  const layout = { height: 420, barmode: "relative", bargap: 0.2, xaxis: categories(place, patches, names, clock) };
  return draw(place, [...bars, line], "step of the forecast (local time)", inUnit("change", unit), layout);
}

/** Returns an axis that names as many patches as there is room for, in two lines each: from, to. */
function categories(place, patches, names, clock) {
  const written = (time) => moment(time, clock, { hasYear: false }).replace(" UTC", "<br>UTC");
  const texts = patches.map(({ start, end }) => (
    start === end ? written(start) : `${written(start)}<br>– ${written(end)}`
  ));
  const longest = Math.max(...texts.flatMap((text) => text.split("<br>").map((line) => line.length)));
  const most = Math.min(Math.max(Math.floor(place.clientWidth / (LETTER * longest)), 1), MOST_TICKS);
  const every = Math.ceil(patches.length / most);
  const shown = [...patches.keys()].filter((index) => index % every === 0);
  return { ...namedAxis(names, shown, shown.map((index) => texts[index])), showgrid: false };
}
