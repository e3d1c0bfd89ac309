// The panel of one sensor: what it read, what is forecast, and why.

import { ask, askOnce, newest } from "./api.js";
import { drawForecast, drawOrTell } from "./charts.js";
import { clockOf, moment } from "./clock.js";
import { element } from "./elements.js";
import { chartIn, foldedIn, longFoldedIn, reasonParts } from "./reasons.js";
import { figureCards, flowsOf, judgement, numberTable, peersOf, readingTable } from "./tables.js";
import { digitsFor, nameOf, number, sentence, signed } from "./words.js";

const MOST_HISTORY = 1000; // readings before the forecast that are drawn
const UNKNOWN_YET = "What happened is not known yet: move the slider back to compare a past forecast.";

/**
 * The panel in an element.
 *
 * What it is told: `context()` returns model, sensors and moment. Whom it tells: `choose(id, isByKey)` and `close()`
 * what people want, `explained(id, reasons)` and `found(findings)` what the service answered, `failed(error)` what
 * went wrong.
 */
export class SensorPanel {
  #place;
  #others;
  #parts = null;
  #turns = 0;
  #drawn = new Map(); // by the place of a chart, what draws it again when colours change
  #signalForForecast = newest();
  #signalForReasons = newest();

  constructor(place, others) {
    this.#place = place;
    this.#others = others;
  }

  /** Shows a sensor at the present moment. */
  async refresh(sensor) {
    if (this.#parts?.head.dataset.sensor !== sensor.id) this.#open(sensor);
    const { forecast, reasons } = this.#parts;
    this.#turns += 1;
    const turn = this.#turns;
    this.#place.setAttribute("aria-busy", "true");
    await Promise.all([
      this.#guard(forecast, this.#showForecast(sensor, forecast)),
      this.#guard(reasons, this.#showReasons(sensor, reasons)),
    ]);
    if (turn === this.#turns) this.#place.setAttribute("aria-busy", "false"); // no later one goes on
  }

  /** Draws the charts again, in the colours of now. */
  redraw() {
    for (const [chart, draw] of this.#drawn) drawOrTell(chart, draw);
  }

  /** Puts the focus on the name of the sensor, where reading begins. */
  focus() {
    this.#parts?.head.querySelector("h2").focus({ preventScroll: true });
  }

  /** Empties and hides the panel, and calls off what it waits for. */
  close() {
    this.#signalForForecast();
    this.#signalForReasons();
    this.#place.hidden = true;
    this.#place.replaceChildren();
    this.#parts = null;
    this.#drawn.clear();
  }

  #open(sensor) {
    this.#parts = skeleton(sensor, this.#others.close);
    this.#drawn.clear();
    this.#place.replaceChildren(...Object.values(this.#parts));
    this.#place.hidden = false;
  }

  async #guard(section, showing) {
    try {
      await showing;
    } catch (error) {
      if (error.name === "AbortError") return;
      this.#others.failed(error);
      section.replaceChildren(element("p", { class: "trouble" }, sentence(error)));
    }
  }

  async #showForecast(sensor, section) {
    const { model, moment: time } = this.#others.context();
    const signal = this.#signalForForecast();
    const steps = Math.min(Math.max(model.history, 4 * model.horizon), MOST_HISTORY);
    const [history, all] = await Promise.all([
      (time ? askOnce : ask)(
        "/v1/history", { model: model.name, sensor: sensor.id, until: time, steps }, { signal, model },
      ),
      forecastsAt(model, time, signal),
    ]);
    this.#others.found(all.findings ?? []);
    const forecast = { steps: all.steps, coverage: all.coverage, ...all.sensors[sensor.id] };
    const told = { unit: sensor.unit, clock: clockOf(model) };
    const chart = chartIn(section, "forecast", `Readings and forecast of ${nameOf(sensor)}`);
    section.replaceChildren(
      figureCards(figuresOf(history, forecast, told)),
      element("h3", {}, "Readings and forecast"),
      chart,
      element("p", { class: "verdict small" }, judgement(forecast, sensor.unit) || UNKNOWN_YET),
      foldedIn(section, "The forecast in numbers", numberTable(forecast, told)),
      longFoldedIn(section, "The readings in numbers", () => readingTable(history, forecast, told)),
    );
    await this.#draw(chart, () => drawForecast(chart, { history, forecast, ...told }));
  }

  async #showReasons(sensor, section) {
    const { model, moment: time, sensors } = this.#others.context();
    const signal = this.#signalForReasons();
    if (!model.explains) {
      this.#others.explained(sensor.id, null);
      const words = `The model ${model.model} gives no reasons: only CANDOR tells where a forecast comes from.`;
      section.replaceChildren(element("h3", {}, "Why this forecast"), element("p", { class: "soft" }, words));
      return;
    }
    const body = { model: model.name, sensor: sensor.id, ...(time && { time }) };
    const why = await (time ? askOnce : ask)("/v1/explain", {}, { signal, body, model });
    const reasons = { flows: flowsOf(why.contributions), peers: peersOf(why.peers) };
    this.#others.explained(sensor.id, reasons);
    const told = { sensors, choose: this.#others.choose, sensor: sensor.id, clock: clockOf(model) };
    const { parts, charts } = reasonParts(section, { ...why, ...reasons }, told);
    section.replaceChildren(...parts);
    await Promise.all(charts.map(({ chart, draw }) => this.#draw(chart, draw)));
  }

  #draw(chart, draw) {
    this.#drawn.set(chart, draw);
    return drawOrTell(chart, draw);
  }
}

function skeleton(sensor, close) {
  const facts = [sensor.name ? sensor.id : "", sensor.unit || "no unit", placeWords(sensor)];
  const title = element("h2", { id: "sensor-title", tabindex: "-1" }, nameOf(sensor));
  const words = element("div", {}, title, element("p", { class: "soft small" }, facts.filter(Boolean).join(" · ")));
  const label = "Close this sensor (Escape)";
  const button = element("button", { type: "button", class: "quiet", "aria-label": label, click: close }, "✕");
  const head = element("div", { class: "title-row", "data-sensor": sensor.id }, words, button);
  const waiting = (text) => element("div", {}, element("p", { class: "loading" }, text));
  return { head, forecast: waiting("Forecasting …"), reasons: waiting("Looking for reasons …") };
}

function placeWords({ latitude, longitude }) {
  if (latitude === null || longitude === null) return "";
  const side = (value, names) => `${Math.abs(value).toFixed(4)}°\u00a0${names[value < 0 ? 1 : 0]}`;
  return `${side(latitude, ["N", "S"])}, ${side(longitude, ["E", "W"])}`;
}

/** Returns the forecasts of all sensors that begin at a time; null means the latest. */
async function forecastsAt(model, time, signal) {
  if (time) return askOnce("/v1/forecast/at", { model: model.name, time }, { signal, model });
  const latest = await ask("/v1/forecast/latest", { model: model.name }, { signal });
  const sensors = {};
  for (const row of latest.forecasts) {
    sensors[row.sensor] ??= { steps: [], forecast: [], lower: [], upper: [], observed: [] };
    sensors[row.sensor].steps.push(row.time);
    for (const name of ["forecast", "lower", "upper"]) sensors[row.sensor][name].push(row[name] ?? null);
    sensors[row.sensor].observed.push(null);
  }
  return { coverage: latest.coverage, findings: latest.findings, steps: [], sensors };
}

function figuresOf(history, forecast, { unit, clock }) {
  const place = history.values.findLastIndex((value) => value !== null);
  const last = place < 0 ? null : history.values[place];
  const [end, low, high] = [forecast.forecast.at(-1), forecast.lower.at(-1), forecast.upper.at(-1)];
  const when = (time) => moment(time, clock, { hasYear: false });
  const written = (value) => number(value, digitsFor(forecast));
  const range = low === null || high === null ? "" : ` (${written(low)} to ${written(high)})`;
  const change = last === null ? null : end - last;
  const read = place < 0 ? "no recent reading" : `last reading, ${when(history.times[place])}`;
  return [
    { value: written(last), unit, words: read },
    { value: written(end), unit, words: `forecast for ${when(forecast.steps.at(-1))}${range}` },
    { value: signed(change), unit, words: "expected change until then" },
  ];
}
