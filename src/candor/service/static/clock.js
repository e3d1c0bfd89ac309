// Times on the clock of the sensors. One rule for all words and charts: places follow the moments, so that lines run
// forward and hours that the clock leaves out make no gap; words follow the local clock, with the offset where it shows
// a time twice, and with seconds where readings are less than minutes apart.

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const ISO = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2})(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$/;
const [MINUTE, HOUR, DAY] = [60, 3600, 86400]; // seconds
// Between ticks: seconds or minutes, hours, days, months.
const [PARTS, HOURS, DAYS, QUARTERS] = [[1, 2, 5, 10, 15, 30], [1, 3, 6, 12], [1, 2, 7, 14], [1, 3, 12]];
const AROUND = 6 * HOUR * 1000; // milliseconds before and after a moment in which the clock may have changed
const ROOM = 0.015; // of the width, at both ends of an axis
const ASIDE = 0.00025; // of the width; nearer to a tick plotly shows the text of the tick to a mouse, not the name
export const MOST_TICKS = 6;
const formats = new Map(); // by zone: making one takes long

/** Returns how the times of a model are written: its zone, the seconds of its step, and what of the clock matters. */
export function clockOf({ zone, interval_seconds: step }) {
  return { zone, step, hasClock: step % DAY !== 0, hasSeconds: step % MINUTE !== 0 };
}

/** Returns a time such as `5 Mar 2025, 14:05`; whole days go without the clock, and a known year can be left out. */
export function moment(time, clock = { hasClock: true }, { hasYear = true } = {}) {
  const found = ISO.exec(time);
  if (!found) return time;
  const date = `${dayOf(found)}${hasYear ? ` ${found[1]}` : ""}`;
  if (!clock.hasClock) return date;
  const words = `${date}, ${hourOf(found, clock)}`;
  return isRepeated(time, clock.zone) ? `${words} ${offsetWords(time)}` : words;
}

function dayOf([, , month, day]) {
  return `${Number(day)}\u00a0${MONTHS[Number(month) - 1]}`; // kept on one line
}

function hourOf([, , , , hour, minute, second = "00", part = ""], { hasSeconds }) {
  return hasSeconds ? `${hour}:${minute}:${second}${part.replace(/\.?0+$/, "")}` : `${hour}:${minute}`;
}

/** Returns from when to when, such as `5 Mar – 8 Mar`. */
export function span({ start, end }, clock) {
  const [from, to] = [start, end].map((time) => moment(time, clock, { hasYear: false }));
  return start === end ? from : `${from} –\u00a0${to}`;
}

/** Returns the instant `milliseconds` after 1970 as a time on the clock of a zone, with its offset. */
export function inZone(milliseconds, zone, sample) {
  const minutes = zoneOffset(milliseconds, zone) ?? offsetOf(sample);
  const clock = new Date(milliseconds + 60000 * minutes).toISOString().replace(/(\.000)?Z$/, "");
  return `${clock}${offsetText(minutes, "-")}`;
}

/** Returns whether the clock of a zone shows a time twice; where this browser does not know the zone, it says no. */
function isRepeated(time, zone) {
  if (!zone) return false;
  const [instant, own] = [Date.parse(time), offsetOf(time)];
  const [before, after] = [instant - AROUND, instant + AROUND].map((other) => zoneOffset(other, zone));
  if (before === after) return false;
  const other = own === before ? after : before;
  return zoneOffset(instant + 60000 * (own - other), zone) === other; // when a clock so set shows the same
}

function zoneOffset(milliseconds, zone) {
  const fixed = /^(?:UTC|GMT)?([+-]\d{2}:?\d{2})$/.exec(zone);
  if (fixed) return offsetMinutes(fixed[1]);
  try {
    if (!formats.has(zone)) {
      formats.set(zone, new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" }));
    }
    const part = formats.get(zone).formatToParts(milliseconds).find((one) => one.type === "timeZoneName");
    return offsetMinutes(part.value.replace("GMT", "") || "Z");
  } catch {
    return null; // a zone that this browser does not know
  }
}

function offsetOf(time) {
  return offsetMinutes(ISO.exec(time)?.[8] ?? "Z");
}

function offsetMinutes(text) {
  const found = /^([+-])(\d{2}):?(\d{2})$/.exec(text);
  return found ? (found[1] === "-" ? -1 : 1) * (60 * Number(found[2]) + Number(found[3])) : 0;
}

function offsetText(minutes, minus) {
  const two = (count) => String(Math.floor(Math.abs(count))).padStart(2, "0");
  return `${minutes < 0 ? minus : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

function offsetWords(time) {
  return `UTC${offsetText(offsetOf(time), "−")}`;
}

/**
 * Returns the axis of a chart over time: `place(time)` is a number and `names(times)` are what plotly places points by,
 * `title` says which clock it is, and `layout` what plotly has to know. Plotly reads dates as a clock that never
 * changes; so moments are names in the order of time, as far apart as the moments.
 */
export function timeAxis(given, clock) {
  const instants = given.map((time) => Date.parse(time));
  const first = instants.reduce((least, one) => Math.min(least, one));
  const last = instants.reduce((most, one) => Math.max(most, one));
  const place = (time) => Math.round((Date.parse(time) - first) / (1000 * clock.step));
  const count = Math.round((last - first) / (1000 * clock.step)) + 1;
  const times = Array.from({ length: count }); // also those at which nothing is drawn
  for (const time of given) times[place(time)] = time;
  for (let index = 0; index < count; index += 1) {
    times[index] ??= inZone(first + 1000 * clock.step * index, clock.zone, given[0]);
  }
  const names = namesOf(times, clock);
  const [ticks, texts] = ticksOf(times, clock);
  const room = ROOM * (count - 1) || 0.5;
  const years = [...new Set([times[0], times.at(-1)].map((time) => time.slice(0, 4)))].join("–");
  return {
    place,
    names: (some) => some.map((time) => names[place(time)]),
    title: `local time (${clock.zone}), ${years}`,
    layout: { ...namedAxis(names, ticks, texts), range: [-room, count - 1 + room] },
  };
}

/** Returns what plotly has to know of an axis of names, of which some carry a text under the axis. */
export function namedAxis(names, ticks, texts) {
  const tickvals = ticks.map((tick) => tick + ASIDE * names.length);
  return { type: "category", categoryorder: "array", categoryarray: names, tickvals, ticktext: texts, tickangle: 0 };
}

/** Returns what times are called; no two share a name. */
function namesOf(times, clock) {
  const names = new Set();
  for (const time of times) {
    const name = moment(time, clock);
    names.add(names.has(name) ? `${name} ${offsetWords(time)}` : name); // days of 24 hours, where the clock changes
  }
  return [...names];
}

/** Returns the places of a few round times, or of the first ones after them, and how they are written. */
function ticksOf(times, clock) {
  const walls = times.map((time) => new Date(`${time.replace(/(Z|[+-]\d{2}:?\d{2})$/, "")}Z`));
  const offsets = times.map(offsetOf);
  const steps = [...PARTS, ...PARTS.map((count) => count * MINUTE), ...HOURS.map((count) => count * HOUR)];
  const even = steps.filter((step) => step % clock.step === 0); // which are equally far apart
  const slots = [
    ...(even.length ? even : steps).map((step) => (
      { form: "clock", slot: (wall) => wall / (1000 * step), isFine: step <= HOUR }
    )),
    ...DAYS.map((count) => ({ form: "day", slot: (wall) => wall / (1000 * DAY * count) })),
    ...QUARTERS.map((count) => ({ form: "month", slot: (wall) => monthsOf(wall) / count })),
  ];
  const begins = ({ slot, isFine }) => walls.flatMap((wall, place) => {
    const number = Math.floor(slot(wall));
    const isBegun = place ? number > Math.floor(slot(walls[place - 1])) : number === slot(wall);
    const isTurned = isFine && place && offsets[place] !== offsets[place - 1]; // the clock was set
    return isBegun || isTurned ? [place] : [];
  });
  const found = slots.map((one) => ({ ...one, places: begins(one) }));
  const { places, form } = found.find((one) => one.places.length <= MOST_TICKS) ?? found.at(-1);
  const every = Math.ceil(places.length / MOST_TICKS) || 1;
  const shown = places.filter((_, index) => index % every === 0);
  const hasSeconds = shown.some((tick) => walls[tick] % (1000 * MINUTE));
  return [shown, shown.map((tick) => tickText(times[tick], form, { ...clock, hasSeconds }))];
}

/** Returns the months since year 0, with the share of the present one that has passed. */
function monthsOf(wall) {
  const begun = Date.UTC(wall.getUTCFullYear(), wall.getUTCMonth());
  return 12 * wall.getUTCFullYear() + wall.getUTCMonth() + (wall - begun) / (32 * 1000 * DAY);
}

function tickText(time, form, clock) {
  const found = ISO.exec(time);
  if (form === "month") return `${MONTHS[Number(found[2]) - 1]} ${found[1]}`;
  if (form === "day" || !clock.hasClock) return dayOf(found);
  const offset = isRepeated(time, clock.zone) ? `<br>${offsetWords(time)}` : "";
  return `${dayOf(found)}<br>${hourOf(found, clock)}${offset}`;
}
