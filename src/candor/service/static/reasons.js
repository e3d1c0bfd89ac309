// The reasons of a forecast, part by part, as CANDOR gives them.

import { drawComponents, drawFusion, drawGates, drawOrTell } from "./charts.js";
import { element } from "./elements.js";
import { arrivalTable, peerTable } from "./tables.js";

const ARRIVED =
  "Deviations that the last patch of this sensor received from its neighbours, by when they were measured. " +
  "Sizes have no unit.";
const NOTHING_ARRIVED =
  "Nothing: no edge of the network leads to or from this sensor, or this variant of the model does not listen to edges.";
const STRENGTHS =
  "Sizes of the network's states, without unit: compare a component with itself, over time and over sensors.";
const PEERS =
  "Found by their behaviour, not by the map. Weights sum to 100 % and say how much each helps to predict; alike, from " +
  "−1 to 1, says how much its background resembles this one. A relation is one of the ways to listen that the model " +
  "learned.";

/** Returns the parts that tell the reasons, and how the charts among them are drawn once they are on the page. */
export function reasonParts(section, why, told) {
  const charts = [];
  const parts = [
    element("h3", {}, "What its recent past is made of"),
    ...componentParts(section, { ...why, hasClock: told.hasClock }, charts),
    element("h3", {}, "What the forecast rests on"),
    fusionChart(section, { ...why, hasClock: told.hasClock }, charts),
    element("h3", {}, "What arrived along which edge"),
    ...(why.flows.length
      ? [note(ARRIVED), arrivalTable(why.flows, told)]
      : [note(NOTHING_ARRIVED)]),
    element("h3", {}, "Sensors it listens to"),
    ...(why.peers.length
      ? [note(PEERS), peerTable(why.peers, told)]
      : [note("None: this model does not look for them.")]),
  ];
  return { parts, charts };
}

function componentParts(section, content, charts) {
  if (!Object.keys(content.components).length) return [note("This variant of the model does not split the past.")];
  const chart = chartIn(section, "components", "Strength of the four components by patch of the past");
  charts.push({ chart, draw: () => drawComponents(chart, content) });
  if (!content.gates) return [chart, note(STRENGTHS)];
  const gates = chartIn(section, "gates", "How far the gates were open by patch of the past");
  const draw = () => drawGates(gates, content);
  charts.push({ chart: gates, draw });
  const folded = foldedIn(section, "How far the gates were open", gates);
  folded.addEventListener("toggle", () => drawOrTell(gates, draw));
  return [chart, note(STRENGTHS), folded];
}

function fusionChart(section, content, charts) {
  const chart = chartIn(section, "fusion", "Share of each branch in each part of the forecast");
  charts.push({ chart, draw: () => drawFusion(chart, content) });
  return chart;
}

function note(text) {
  return element("p", { class: "soft small" }, text);
}

/** Returns the place of a chart: the one that is there already, so that it changes without a flicker, or a new one. */
export function chartIn(section, name, words) {
  const attributes = { class: `chart ${name}`, role: "img", "aria-label": words };
  return section.querySelector(`.chart.${name}`) ?? element("div", attributes);
}

/** Returns something that opens on request, open if it was open before. */
export function foldedIn(section, words, content) {
  const before = [...section.querySelectorAll("details")].find((one) => one.firstChild.textContent === words);
  return element("details", { open: before?.open }, element("summary", {}, words), content);
}
