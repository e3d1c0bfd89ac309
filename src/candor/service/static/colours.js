// What the map is coloured by: how numbers become colours, and the legend that says so.

import { element } from "./elements.js";
import { colour } from "./theme.js";
import { amount, inUnit, number, signed } from "./words.js";

const MANY = 50; // sensors; among so many, one that stands out may not take all colours for itself
const MOST_SHOWN = 0.98; // of many sensors lie within the colours

const LEAST_SHARE = 1e-5; // of the forecast; a smaller change is what computing left over

function changeOf({ change, forecast }) {
  return Number.isFinite(change) && Math.abs(change) < LEAST_SHARE * Math.abs(forecast) ? 0 : change;
}

/** What can be shown: its words, its number for a row of the overview, and its colours from low to high. */
export const MEASURES = {
  change: {
    title: (span) => `Expected change over the ${span}`,
    note: "Mean of the forecast minus the last reading.",
    missing: "no recent reading",
    value: changeOf,
    write: signed,
    isSigned: true,
    stops: ["--fall", "--fall-soft", "--even", "--rise-soft", "--rise"],
  },
  uncertainty: {
    title: (span) => `Uncertainty over the ${span}`,
    note: "Mean width of the interval around the forecast.",
    missing: "no interval",
    value: (row) => row.width,
    write: number,
    isSigned: false,
    stops: ["--sure", "--sure-soft", "--unsure-soft", "--unsure"],
  },
};

/** Returns how rows of the overview are coloured by a measure: `fill(row)`, and `limits` by unit. */
export function makePaint(measure, rows) {
  const limits = new Map();
  for (const unit of new Set(rows.map((row) => row.unit))) {
    const sizes = rows.filter((row) => row.unit === unit).map((row) => measure.value(row)).filter(Number.isFinite);
    limits.set(unit, limitOf(sizes.map(Math.abs).sort((one, other) => one - other)));
  }
  const stops = measure.stops.map((name) => channels(colour(name)));
  const fill = (row) => {
    const value = row && measure.value(row);
    if (!Number.isFinite(value)) return null;
    const share = value / limits.get(row.unit).size;
    return between(stops, measure.isSigned ? (share + 1) / 2 : share);
  };
  return { measure, limits, fill };
}

function limitOf(sizes) {
  const largest = sizes.at(-1) ?? 0;
  const size = sizes.length > MANY ? sizes[Math.floor(MOST_SHOWN * (sizes.length - 1))] : largest;
  return { size: size || 1, isCut: largest > size };
}

function channels(text) {
  return text.match(/[\d.]+/g).slice(0, 3).map(Number);
}

function between(stops, share) {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const left = Math.min(Math.floor(place), stops.length - 2);
  const mixed = stops[left].map((low, index) => Math.round(low + (place - left) * (stops[left + 1][index] - low)));
  return `rgb(${mixed.join(", ")})`;
}

/** Returns the title of the map, with the unit where all sensors share one. */
export function paintTitle(paint, span) {
  const units = [...paint.limits.keys()];
  return inUnit(paint.measure.title(span), units.length === 1 ? units[0] : "");
}

/** Returns the parts of the legend: the colours, and what their ends and their middle mean. */
export function legendOf(paint) {
  const { measure, limits } = paint;
  const bar = element("div", { class: "ramp", "aria-hidden": "true" });
  bar.style.background = `linear-gradient(to right, ${measure.stops.map((name) => `var(${name})`).join(", ")})`;
  const [[unit, limit] = ["", { size: 1, isCut: false }]] = limits;
  const [less, more] = limit.isCut ? [" or less", " or more"] : ["", ""];
  const words =
    limits.size > 1
      ? [measure.isSigned ? "largest fall of its unit" : "none", "", "largest of its unit"]
      : measure.isSigned
        ? [`${amount(-limit.size, unit)}${less}`, "no change", `${amount(limit.size, unit, signed)}${more}`]
        : ["0", "", `${amount(limit.size, unit)}${more}`];
  return [bar, element("div", { class: "ends" }, ...words.map((word) => element("span", {}, word)))];
}
