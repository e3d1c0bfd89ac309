// The reasons of a forecast, part by part, as CANDOR gives them.

import {
  BRANCHES, COMPONENTS, drawAccount, drawComponents, drawFusion, drawGates, drawOrTell, GATES, PARTS,
} from "./charts.js";
import { element } from "./elements.js";
import { arrivalTable, patchTable, peerTable } from "./tables.js";
import { nameOf, number, percent, signed } from "./words.js";

const ARRIVED =
  "Deviations that the last patch of this sensor received from its neighbours, by when they were measured. " +
  "Sizes have no unit; under each stands the weight of the sender.";
const NOTHING_ARRIVED =
  "Nothing: no edge of the network leads to or from this sensor, or this variant of the model does not listen to edges.";
const STRENGTHS =
  "Sizes of the network's states, without unit. They do not add up: compare a component with itself, over time and " +
  "over sensors, not with another.";
const ACCOUNT =
  "Changes from the last reading, in its unit; all parts together are the forecast. What is usual, stored, or arrives " +
  "along edges is found in closed form; the learned correction is what networks add to it.";
const PEERS =
  "Found by their behaviour, not by the map. Weights sum to 100 % and say how much each helps to predict; alike, from " +
  "−1 to 1, says how much its background resembles this one. A relation is one of the ways to listen that the model " +
  "learned.";

/** Returns the parts that tell the reasons, and how the charts among them are drawn once they are on the page. */
export function reasonParts(section, why, told) {
  const charts = [];
  if (why.account) return accountParts(section, why, told);
  const parts = [
    element("h3", {}, "What its recent past is made of"),
    ...componentParts(section, { ...why, clock: told.clock }, charts),
    element("h3", {}, "What the forecast rests on"),
    ...fusionParts(section, { ...why, clock: told.clock }, charts),
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

/** Returns the account of a forecast: changes from the last reading, part by part, as a chart and as a table. */
function accountParts(section, why, { sensors, clock }) {
  const chart = chartIn(section, "account", "What the forecast is made of, as changes from the last reading");
  const columns = why.account.parts.map((part) => {
    const name = part.kind === "arrivals" ? nameOf(sensors.get(part.sender) ?? { id: part.sender, name: "" }) : "";
    const [words] = PARTS[part.kind];
    const way = part.is_reverse ? "back from" : "from";
    return { words: name ? `${way} ${name}` : words, kind: part.kind, values: part.values.map((one) => one - part.last) };
  });
  const draw = () => drawAccount(chart, { ...why, columns, clock });
  const steps = why.times.map((time) => ({ start: time, end: time }));
  const numbers = "The account in numbers";
  const shown = columns.map(({ words, values }) => [words, values]);
  const parts = [
    element("h3", {}, "What the forecast is made of"), chart, note(ACCOUNT),
    foldedIn(section, numbers, patchTable(steps, shown, signed, clock, numbers)),
  ];
  return { parts, charts: [{ chart, draw }] };
}

function componentParts(section, content, charts) {
  const { patches, components, gates, clock } = content;
  if (!Object.keys(components).length) return [note("This variant of the model does not split the past.")];
  const chart = chartIn(section, "components", "Strength of the four components by patch of the past");
  charts.push({ chart, draw: () => drawComponents(chart, content) });
  const numbers = "The components in numbers";
  const parts = [
    chart, note(STRENGTHS),
    foldedIn(section, numbers, patchTable(patches, columnsOf(COMPONENTS, components), number, clock, numbers)),
  ];
  return gates ? [...parts, gatesFold(section, content, charts)] : parts;
}

function gatesFold(section, content, charts) {
  const { patches, gates, clock } = content;
  const chart = chartIn(section, "gates", "How far the gates were open by patch of the past");
  const draw = () => drawGates(chart, content);
  charts.push({ chart, draw });
  const share = (value) => value.toFixed(2);
  const numbers = patchTable(patches, columnsOf(GATES, gates), share, clock, "The gates in numbers");
  const folded = foldedIn(section, "How far the gates were open", element("div", {}, chart, numbers));
  folded.addEventListener("toggle", () => drawOrTell(chart, draw));
  return folded;
}

function fusionParts(section, content, charts) {
  const { fusion, clock } = content;
  const chart = chartIn(section, "fusion", "Share of each branch in each part of the forecast");
  charts.push({ chart, draw: () => drawFusion(chart, content) });
  const shares = Object.fromEntries(Object.keys(BRANCHES).map((name) => [name, fusion.map((part) => part[name])]));
  const numbers = "The shares in numbers";
  const table = patchTable(fusion, columnsOf(BRANCHES, shares), percent, clock, numbers);
  return [chart, foldedIn(section, numbers, table)];
}

/** Returns the columns of a table with the words that a chart has for them. */
function columnsOf(looks, values) {
  return Object.entries(looks).filter(([name]) => values[name]).map(([name, [words]]) => [words, values[name]]);
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

/** Returns the same, with what is long: it is made when it is opened, not for all who do not look. */
export function longFoldedIn(section, words, make) {
  const folded = foldedIn(section, words, null);
  const fill = () => folded.open && folded.children.length === 1 && folded.append(make());
  fill();
  folded.addEventListener("toggle", fill);
  return folded;
}
