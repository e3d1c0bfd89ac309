// The slider over moments: which forecast is shown, the latest or one whose outcome is known by now.

import { clockOf, inZone, moment } from "./clock.js";
import { byId, debounced } from "./elements.js";

const REST = 180; // milliseconds that the slider stands still before the service is asked

/** Returns the slider; `changed(time)` is called with the first step of the wanted forecast, null for the latest. */
export function createMoments(changed) {
  const [section, slider, told] = [byId("moments"), byId("slider"), byId("moment")];
  let axis = null;
  let isMoving = false; // somebody moved it, and nobody was told yet
  const tellLater = debounced(() => {
    isMoving = false;
    changed(timeAt(axis, Number(slider.value)));
  }, REST);

  function moveTo(position) {
    slider.value = String(position);
    isMoving = true;
    write();
    tellLater();
  }

  function write() {
    const isLatest = Number(slider.value) === axis.last;
    const time = isLatest ? axis.latest : timeAt(axis, Number(slider.value));
    const text = `${moment(time, axis.clock)}${isLatest ? " (latest)" : ""}`;
    told.textContent = text;
    slider.setAttribute("aria-valuetext", text);
    slider.style.setProperty("--share", `${(100 * Number(slider.value)) / Math.max(axis.last, 1)}%`);
    byId("later").disabled = isLatest; // but "latest" never is: readings may have arrived since it was pressed
    byId("earlier").disabled = Number(slider.value) === 0;
  }

  slider.addEventListener("input", () => moveTo(Number(slider.value)));
  slider.addEventListener("keydown", (event) => {
    const leaps = { PageUp: axis.horizon, PageDown: -axis.horizon };
    if (!(event.key in leaps)) return;
    event.preventDefault();
    moveTo(Math.min(Math.max(Number(slider.value) + leaps[event.key], 0), axis.last));
  });
  byId("earlier").addEventListener("click", () => moveTo(Number(slider.value) - 1));
  byId("later").addEventListener("click", () => moveTo(Number(slider.value) + 1));
  byId("latest").addEventListener("click", () => moveTo(axis.last));
  return {
    setModel(model, latest, time) {
      axis = axisOf(model, latest);
      section.hidden = axis === null;
      if (axis === null) return;
      slider.max = String(axis.last);
      if (!isMoving) slider.value = String(time === null ? axis.last : positionOf(axis, time));
      write();
    },
  };
}

/** Returns the moments a model can be asked for; null if it knows no past. */
function axisOf(model, latest) {
  if (model.first_origin === null || model.last_origin === null || latest === null) return null;
  const end = Date.parse(latest) > Date.parse(model.last_origin) ? latest : model.last_origin; // whichever is newer
  const [first, step] = [Date.parse(model.first_origin), 1000 * model.interval_seconds];
  return {
    first, step, latest: end, clock: clockOf(model), horizon: model.horizon,
    last: Math.max(Math.round((Date.parse(end) - first) / step), 0), // the position of the latest forecast
  };
}

function timeAt(axis, position) {
  return position >= axis.last ? null : inZone(axis.first + position * axis.step, axis.clock.zone, axis.latest);
}

function positionOf(axis, time) {
  return Math.min(Math.max(Math.round((Date.parse(time) - axis.first) / axis.step), 0), axis.last);
}
