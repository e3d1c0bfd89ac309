// The list of sensors beside the map: the same in words, with search, for keys and for eyes.

import { byId, element } from "./elements.js";
import { amount, counted, nameOf, NOTHING } from "./words.js";

/** The list; `choose(id, isByKey)` is called when a sensor is chosen. */
export class SensorList {
  #choose;
  #entries = [];
  #list = byId("sensors");
  #search = byId("search");

  constructor(choose) {
    this.#choose = choose;
    this.#search.addEventListener("input", () => this.#filter());
    this.#search.addEventListener("keydown", (event) => this.#searchKey(event));
    this.#list.addEventListener("keydown", (event) => this.#listKey(event));
  }

  /** Lists other sensors. */
  setNetwork(sensors) {
    this.#search.value = "";
    this.#entries = sensors.map((sensor) => entryOf(sensor, this.#choose));
    this.#list.replaceChildren(...this.#entries.map((entry) => entry.item));
    this.#filter();
  }

  /** Shows the numbers and colours of a paint. */
  setPaint(paint, rows) {
    for (const entry of this.#entries) colourEntry(entry, paint, rows.get(entry.id));
  }

  /** Marks the chosen sensor; null marks none. */
  setChosen(id) {
    for (const entry of this.#entries) {
      if (entry.id === id) entry.button.setAttribute("aria-current", "true");
      else entry.button.removeAttribute("aria-current");
    }
    const chosen = this.#entries.find((entry) => entry.id === id);
    if (!chosen) return;
    if (!chosen.item.hidden) this.#makeReachable(chosen); // what a search hides cannot be reached by Tab
    bringIntoSight(this.#list, chosen.item);
  }

  /** Puts the focus on a sensor, or on the first one where that is not listed. */
  focus(id) {
    this.#focus(this.#shown().find((entry) => entry.id === id) ?? this.#shown()[0]);
  }

  #shown() {
    return this.#entries.filter((entry) => !entry.item.hidden);
  }

  #filter() {
    const wanted = this.#search.value.trim().toLowerCase();
    for (const entry of this.#entries) entry.item.hidden = !entry.words.includes(wanted);
    const shown = this.#shown();
    byId("found").textContent = wanted ? `${counted(shown.length, "sensor")} of ${this.#entries.length}` : "";
    this.#makeReachable(shown.find((entry) => entry.button.hasAttribute("aria-current")) ?? shown[0]);
  }

  /** One sensor of the list is reached by Tab, the others by the arrow keys. */
  #makeReachable(chosen) {
    for (const entry of this.#entries) entry.button.tabIndex = entry === chosen ? 0 : -1;
  }

  #focus(entry) {
    if (!entry) return;
    this.#makeReachable(entry);
    entry.button.focus();
  }

  #searchKey(event) {
    const [first] = this.#shown();
    if (event.key === "ArrowDown") this.#focus(first);
    else if (event.key === "Enter" && first) this.#choose(first.id, true);
    else if (event.key === "Escape" && this.#search.value) {
      this.#search.value = "";
      this.#filter();
      event.stopPropagation(); // the sensor that is open stays open
    } else return;
    event.preventDefault();
  }

  #listKey(event) {
    const shown = this.#shown();
    const place = shown.findIndex((entry) => entry.button === document.activeElement);
    const aims = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: shown.length - 1 };
    if (!(event.key in aims)) return;
    event.preventDefault();
    if (aims[event.key] < 0) this.#search.focus();
    else this.#focus(shown[Math.min(aims[event.key], shown.length - 1)]);
  }
}

function entryOf(sensor, choose) {
  const dot = element("span", { class: "dot", "aria-hidden": "true" });
  const value = element("span", { class: "value" });
  const name = element("span", { class: "name" }, nameOf(sensor));
  const id = sensor.name ? element("span", { class: "id soft" }, sensor.id) : null;
  const button = element("button", { type: "button", "data-sensor": sensor.id, tabindex: "-1" }, dot, name, id, value);
  // A click made by a key has no number of clicks.
  button.addEventListener("click", (event) => choose(sensor.id, event.detail === 0));
  const words = `${sensor.name} ${sensor.id}`.toLowerCase();
  return { id: sensor.id, words, item: element("li", {}, button), button, dot, value };
}

function colourEntry(entry, paint, row) {
  const fill = paint.fill(row);
  entry.dot.classList.toggle("unknown", fill === null);
  entry.dot.style.background = fill ?? "";
  const unit = paint.limits.size > 1 ? row?.unit : ""; // one unit stands above the map, not in every line
  entry.value.textContent = fill === null ? NOTHING : amount(paint.measure.value(row), unit, paint.measure.write);
}

/** Scrolls a list, and nothing around it, until an item can be seen. */
function bringIntoSight(list, item) {
  const [frame, place] = [list.getBoundingClientRect(), item.getBoundingClientRect()];
  if (place.top < frame.top) list.scrollTop -= frame.top - place.top;
  else if (place.bottom > frame.bottom) list.scrollTop += place.bottom - frame.bottom;
}
