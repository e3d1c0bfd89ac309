// How numbers, lengths of time and names are written.

const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const MOST_PLACES = 12; // after the point, as elsewhere in candor: dust in kg/m³ is some 0.00000001
export const NOTHING = "–";

/** Returns a number with about three digits that count; a dash where there is none. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  const places = Math.min(Math.max(digits - 1 - size, 0), MOST_PLACES);
  const text = Math.abs(value).toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
  return value < 0 && /[1-9]/.test(text) ? `−${text}` : text;
}

/** Returns a number with as many decimals as the largest of its column needs for three digits. */
export function aligned(value, largest) {
  return value.toFixed(Math.min(Math.max(2 - Math.floor(Math.log10(largest || 1)), 0), MOST_PLACES));
}

/** Returns how many digits the numbers of a forecast need: so many that the ends of its narrowest interval differ. */
export function digitsFor({ forecast, lower, upper }) {
  const widths = lower.flatMap((low, place) => (low === null || upper[place] === null ? [] : [upper[place] - low]));
  const apart = widths.length ? Math.min(...widths) : Math.max(...forecast) - Math.min(...forecast);
  const largest = Math.max(...forecast.map(Math.abs));
  if (!(apart > 0 && apart < largest)) return 3;
  const needed = Math.floor(Math.log10(largest)) - Math.floor(Math.log10(apart)) + 2;
  return Math.min(Math.max(needed, 3), 7); // single precision has no more
}

/** Returns a number with its sign, such as +0.52. */
export function signed(value) {
  const text = number(value);
  return text === NOTHING || text.startsWith("−") || !/[1-9]/.test(text) ? text : `+${text}`;
}

/** Returns a number with its unit, if it has one. */
export function amount(value, unit, write = number) {
  const text = write(value);
  return text === NOTHING || !unit ? text : `${text}\u00a0${unit}`; // on one line
}

/** Returns a label with its unit in brackets, if there is one. */
export function inUnit(label, unit) {
  return unit ? `${label} [${unit}]` : label;
}

/** Returns a share as a percentage. */
export function percent(share) {
  return share === null || share === undefined ? NOTHING : `${Number((100 * share).toFixed(1))}\u00a0%`;
}

/** Returns `1 edge` or `1,722 edges`. */
export function counted(count, thing) {
  return `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`;
}

/** Returns a length of time in the largest unit that divides it, such as `14 days` or `90 minutes`. */
export function duration(seconds) {
  const [unit, length] = UNITS.find(([, one]) => seconds >= one && Number.isInteger(seconds / one)) ?? ["second", 1];
  return counted(seconds / length, unit);
}

/** Returns the time to come, such as `next 14 days` or `next hour`. */
export function next(seconds) {
  return `next ${duration(seconds).replace(/^1 /, "")}`;
}

/** Returns what people call a sensor: its name, or its id where it has none. */
export function nameOf(sensor) {
  return sensor.name || sensor.id;
}

/**
 * Returns names short enough for labels: their beginnings, or their ends where several begin alike, or what follows the
 * words that they share with another where their ends are alike too.
 */
export function shortNames(names, longest) {
  const tail = (name) => `…${name.slice(1 - longest).replace(/^\S*\s+(?=\S)/, "")}`; // from the next whole word on
  const rest = (name) => {
    const shared = sharedLength(name, names);
    return shared ? `…${beginning(name.slice(shared), longest - 1)}` : beginning(name, longest);
  };
  let short = names.map((name) => beginning(name, longest));
  for (const cut of [tail, rest]) {
    const before = short;
    const isClear = (text, place) => text === names[place] || before.indexOf(text) === before.lastIndexOf(text);
    short = before.map((text, place) => (isClear(text, place) ? text : cut(names[place])));
  }
  return short;
}

function beginning(name, longest) {
  return name.length <= longest ? name : `${name.slice(0, longest - 1).replace(/[\s.,;(-]+$/, "")}…`;
}

/** Returns how many letters the whole words have that a name begins with as another one does. */
function sharedLength(name, names) {
  let most = 0;
  for (const other of names) {
    let length = 0;
    while (length < name.length && name[length] === other[length]) length += 1;
    if (other !== name) most = Math.max(most, name.lastIndexOf(" ", length - 1) + 1);
  }
  return most;
}

/** Returns an error as a sentence, with what to do about it. */
export function sentence({ message, hint }) {
  const what = `${message.charAt(0).toUpperCase()}${message.slice(1)}`;
  return hint ? `${what}: ${hint}.` : `${what}.`;
}
