// What is told in tables: what arrived along which edge, sensors that are listened to, and the numbers of a forecast.

import { moment, span } from "./clock.js";
import { element } from "./elements.js";
import { aligned, amount, digitsFor, inUnit, nameOf, number, percent } from "./words.js";

const MOST_ROWS = 8; // that are shown before somebody asks for all

/** Returns contributions summed up by edge, the largest first: who sent, which way, how much, and how old it was. */
export function flowsOf(contributions) {
  const flows = new Map();
  for (const { direction, sensor, patch, weight, size } of contributions) {
    const key = JSON.stringify([direction, sensor]);
    const flow = flows.get(key) ?? { direction, sensor, size: 0, parts: [] };
    flow.size += size;
    flow.parts.push({ patch, weight, size });
    flows.set(key, flow);
  }
  return [...flows.values()].sort((one, other) => other.size - one.size);
}

/** Returns peers summed over the channels that found them, the heaviest first. */
export function peersOf(peers) {
  const found = new Map();
  for (const { sensor, channel, weight, resemblance } of peers) {
    const peer = found.get(sensor) ?? { sensor, resemblance, weight: 0, channels: new Set() };
    peer.weight += weight;
    peer.channels.add(channel);
    found.set(sensor, peer);
  }
  return [...found.values()].sort((one, other) => other.weight - one.weight);
}

/** Returns the table of what arrived: a row for each edge, a cell for each patch of the past it speaks of. */
export function arrivalTable(flows, { sensors, choose, clock }) {
  const patches = distinctPatches(flows);
  const largest = flows.flatMap((flow) => flow.parts).reduce((most, part) => Math.max(most, part.size), 0) || 1;
  const titles = ["from", ...patches.map((patch) => span(patch, clock)), "in all"];
  const rows = flows.map((flow) => {
    const words = flow.direction === "forward" ? "→ along the edge" : "← against the edge";
    const sender = element("th", { scope: "row" }, sensorLink(sensors, flow.sensor, choose));
    sender.append(element("span", { class: `way ${flow.direction} small` }, words));
    const cells = patches.map((patch) => heatCell(flow, patch, largest));
    return element("tr", {}, sender, ...cells, element("td", { class: "number" }, aligned(flow.size, largest)));
  });
  return foldedTable(titles, rows, "What arrived at this sensor along each edge, by when the sender measured it");
}

function distinctPatches(flows) {
  const parts = flows.flatMap((flow) => flow.parts);
  const patches = new Map(parts.map(({ patch }) => [`${patch.start} ${patch.end}`, patch]));
  return [...patches.values()].sort((one, other) => Date.parse(one.start) - Date.parse(other.start));
}

function heatCell(flow, patch, largest) {
  const parts = flow.parts.filter((part) => part.patch.start === patch.start && part.patch.end === patch.end);
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  const cell = element("td", { class: "heat number" }, parts.length ? aligned(size, largest) : "");
  if (parts.length) {
    cell.append(element("span", {}, parts.map((part) => percent(part.weight)).join(", ")));
    cell.style.setProperty("--heat", `${Math.round((55 * Math.min(size, largest)) / largest)}%`);
    cell.classList.add(flow.direction);
  }
  return cell;
}

/** Returns the table of sensors that are listened to, with bars as long as their weights. */
export function peerTable(peers, { sensors, choose, sensor }) {
  const largest = peers[0]?.weight || 1;
  const rows = peers.map((peer) => {
    const name = element("th", { scope: "row" }, sensorLink(sensors, peer.sensor, choose));
    if (peer.sensor === sensor) name.append(element("span", { class: "soft small" }, "itself"));
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${(100 * peer.weight) / largest}%`;
    const channels = [...peer.channels].sort((one, other) => one - other).map((channel) => channel + 1).join(", ");
    return element(
      "tr", {}, name, element("td", { class: "bars" }, bar),
      element("td", { class: "number" }, percent(peer.weight)),
      element("td", { class: "number" }, peer.resemblance.toFixed(2).replace("-", "−")),
      element("td", { class: "number soft" }, channels),
    );
  });
  return foldedTable(["sensor", "", "weight", "alike", "relation"], rows, "Sensors it listens to, the heaviest first");
}

/** Returns the table of one forecast, step by step. */
export function numberTable(forecast, { unit, clock }) {
  const hasOutcome = forecast.observed.some((value) => value !== null);
  const titles = [`local time (${clock.zone})`, inUnit("forecast", unit), "at least", "at most"];
  if (hasOutcome) titles.push("what happened");
  const digits = digitsFor(forecast);
  const rows = forecast.steps.map((time, place) => {
    const values = [forecast.forecast, forecast.lower, forecast.upper, ...(hasOutcome ? [forecast.observed] : [])];
    const cells = values.map((column) => element("td", { class: "number" }, number(column[place], digits)));
    return rowOf(moment(time, clock), cells);
  });
  return table(titles, rows, "The forecast in numbers");
}

/** Returns the table of the readings before a forecast, the newest first. */
export function readingTable({ times, values }, forecast, { unit, clock }) {
  const digits = digitsFor(forecast);
  const rows = times.map((time, place) => (
    rowOf(moment(time, clock), [element("td", { class: "number" }, number(values[place], digits))])
  ));
  return foldedTable([`local time (${clock.zone})`, inUnit("reading", unit)], rows.reverse(), "The readings in numbers");
}

/** Returns a table of numbers by patch: `columns` are words and the numbers under them, written by `write`. */
export function patchTable(patches, columns, write, clock, caption) {
  const rows = patches.map((patch, place) => (
    rowOf(span(patch, clock), columns.map(([, values]) => element("td", { class: "number" }, write(values[place]))))
  ));
  return table(["local time", ...columns.map(([words]) => words)], rows, caption);
}

function rowOf(time, cells) {
  return element("tr", {}, element("th", { scope: "row", class: "time" }, time), ...cells);
}

/** Returns a button that chooses the sensor it names. */
function sensorLink(sensors, id, choose) {
  const name = nameOf(sensors.get(id) ?? { id, name: "" });
  const click = (event) => choose(id, event.detail === 0);
  return element("button", { type: "button", class: "link", title: id, click }, name);
}

function foldedTable(titles, rows, caption) {
  const made = table(titles, rows, caption);
  if (rows.length <= MOST_ROWS + 2) return made;
  for (const row of rows.slice(MOST_ROWS)) row.hidden = true;
  const more = element("button", { type: "button", class: "quiet more" }, `Show all ${rows.length}`);
  more.addEventListener("click", () => {
    for (const row of rows) row.hidden = false;
    (rows[MOST_ROWS].querySelector("button") ?? made).focus(); // what was pressed goes
    more.remove();
  });
  made.append(more);
  return made;
}

function table(titles, rows, caption) {
  const heads = titles.map((title, place) => element("th", { scope: "col", class: place ? "number" : null }, title));
  return element(
    "div", { class: "wide", tabindex: "0", role: "group", "aria-label": caption },
    element(
      "table", {},
      element("caption", { class: "visually-hidden" }, caption),
      element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...rows),
    ),
  );
}

/** Returns the cards at the head of a sensor: a large figure and what it is. */
export function figureCards(figures) {
  return element(
    "ul", { class: "figures" },
    ...figures.map(({ value, unit, words }) => (
      element("li", {}, element("strong", {}, value), ` ${unit}`, element("span", { class: "soft small" }, words))
    )),
  );
}

/** Returns how a forecast compares with what happened, in words; empty where nothing is known yet. */
export function judgement(forecast, unit) {
  const known = forecast.observed.map((value, place) => ({ value, place })).filter(({ value }) => value !== null);
  if (!known.length) return "";
  const errors = known.map(({ value, place }) => Math.abs(forecast.forecast[place] - value));
  const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length;
  const share = `${known.length} of ${forecast.steps.length} steps are known`;
  const text = `It missed what happened by ${amount(mean, unit)} on average (${share})`;
  const bounded = known.filter(({ place }) => forecast.lower[place] !== null && forecast.upper[place] !== null);
  if (!bounded.length) return `${text}.`;
  const held = bounded.filter(({ value, place }) => forecast.lower[place] <= value && value <= forecast.upper[place]);
  return `${text}; the ${percent(forecast.coverage)} interval held ${held.length} of ${bounded.length} readings.`;
}
