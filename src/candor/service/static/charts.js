// The charts of one sensor, drawn by plotly, which takes texts for a small kind of HTML: what comes from outside is
// escaped.

import { colour, veil } from "./theme.js";
import { moment, percent, sentence, span, wallClock } from "./words.js";

const COMPONENTS = { background: "--blue", accumulation: "--orange", release: "--green", shock: "--vermilion" };
const GATES = {
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
const MOST_TICKS = 6;
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
export function drawForecast(place, { history, forecast, unit, zone, hasClock }) {
  const steps = forecast.steps.map(wallClock);
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
  traces.push(line("readings", history.times.map(wallClock), history.values, readings));
  const ahead = { mode: "lines", line: { color: colour("--blue"), width: 2.6 } };
  traces.push(line("forecast", steps, forecast.forecast, ahead));
  if (forecast.observed.some((value) => value !== null)) {
    const look = { mode: "lines+markers", line: { color: colour("--vermilion"), width: 1.8 }, marker: { size: 6 } };
    traces.push(line("what happened", steps, forecast.observed, look));
  }
  const start = { type: "line", xref: "x", yref: "paper", x0: steps[0], x1: steps[0], y0: 0, y1: 1 };
  const shapes = [{ ...start, line: { color: colour("--soft"), width: 1, dash: "dot" } }];
  const [tickformat, hoverformat] = hasClock ? ["%H:%M\n%-d %b %Y", "%-d %b %Y, %H:%M"] : ["%-d %b\n%Y", "%-d %b %Y"];
  const xaxis = { type: "date", nticks: 6, tickformat, hoverformat };
  return draw(place, traces, `local time (${zone})`, unit || "reading", { height: 340, shapes, xaxis });
}

/** Draws how strong the four components were in each patch of the past, stacked. */
export function drawComponents(place, { patches, components, hasClock }) {
  const names = patches.map((patch) => span(patch, hasClock));
  const traces = Object.keys(COMPONENTS).filter((name) => components[name]).map((name) => (
    bar(name, names, components[name], COMPONENTS[name], "%{y:.3~g}")
  ));
  const layout = { barmode: "stack", bargap: 0.3, xaxis: categories(patches, names, hasClock) };
  return draw(place, traces, "patch of the past, first to last reading (local time)", "strength, without unit", layout);
}

/** Draws how far the gates were open in each patch of the past. */
export function drawGates(place, { patches, gates, hasClock }) {
  const names = patches.map((patch) => span(patch, hasClock));
  const known = Object.entries(GATES).filter(([name]) => gates[name]); // where rain stands for shocks, two are not there
  const traces = known.map(([name, [words, tone, symbol]]) => ({
    x: names, y: gates[name], name: words, mode: "lines+markers", line: { color: colour(tone) },
    marker: { symbol, size: 8 }, hovertemplate: "%{y:.2f}",
  }));
  const layout = { xaxis: categories(patches, names, hasClock), yaxis: { range: [-0.03, 1.03] } };
  return draw(place, traces, "patch of the past, first to last reading (local time)", "gate: 0 shut, 1 open", layout);
}

/** Draws how much each branch of the network counts in each part of the forecast; the shares sum to 100 %. */
export function drawFusion(place, { fusion, hasClock }) {
  const names = fusion.map((patch) => span(patch, hasClock));
  const traces = Object.entries(BRANCHES).map(([branch, [words, tone]]) => (
    bar(words, names, fusion.map((patch) => 100 * patch[branch]), tone, "%{y:.0f} %")
  ));
  const layout = {
    barmode: "stack", bargap: 0.3,
    xaxis: categories(fusion, names, hasClock), yaxis: { range: [0, 100.5] },
  };
  const across = "part of the forecast, first to last step (local time)";
  return draw(place, traces, across, "share in the forecast [%]", layout);
}

function bar(name, x, y, tone, hovertemplate) {
  return { type: "bar", name, x, y, marker: { color: colour(tone) }, hovertemplate };
}

/** Returns an axis that names as many patches as there is room for, in two lines each: from, to. */
function categories(patches, names, hasClock) {
  const every = Math.ceil(patches.length / MOST_TICKS);
  const places = names.map((_, place) => place).filter((place) => place % every === 0);
  const options = { hasClock, hasYear: false };
  const ticktext = places.map((place) => {
    const { start, end } = patches[place];
    return start === end ? moment(start, options) : `${moment(start, options)}<br>– ${moment(end, options)}`;
  });
  return { type: "category", tickvals: places, ticktext, tickangle: 0, showgrid: false };
}
