// The page: which model, which sensor, which moment, and who has to hear of it.

import { ask, askOnce, hasToken, keepToken, newest } from "./api.js";
import { legendOf, makePaint, MEASURES, paintTitle } from "./colours.js";
import { loadPlotly } from "./charts.js";
import { moment } from "./clock.js";
import { byId, element } from "./elements.js";
import { SensorList } from "./list.js";
import { createMap } from "./map.js";
import { createMoments } from "./moments.js";
import { SensorPanel } from "./sensor.js";
import { onTheme, startTheme } from "./theme.js";
import { amount, counted, duration, nameOf, next, sentence } from "./words.js";

const state = { models: [], model: null, sensors: new Map(), rows: new Map(), paint: null };
Object.assign(state, { sensor: null, moment: null, latest: null }); // ids and times; no moment means the latest
const GENERAL = ["token", "unreachable", "busy"]; // kinds of trouble that concern the whole page
const signalForOverview = newest();
const whenIdle = window.requestIdleCallback ?? ((action) => setTimeout(action, 500)); // not every browser can tell

startTheme(byId("theme"));
const map = createMap(byId("map"), byId("tip"), (id) => choose(id, false), describe);
const list = new SensorList(choose);
const moments = createMoments((time) => {
  state.moment = time;
  byId("workspace").setAttribute("aria-busy", "true");
  keepAddress();
  attempt(() => showMoment(time));
});
const panel = new SensorPanel(byId("sensor"), {
  context: () => state,
  choose,
  close,
  explained: showReasons,
  found: showFindings,
  failed: (error) => GENERAL.includes(error.kind) && tell(error, refreshSensor),
});

/** Asks which models there are, and opens the one of the address, or the first. */
async function start() {
  const { models } = await ask("/v1/models");
  state.models = models;
  byId("token-form").hidden = true;
  const wanted = new URLSearchParams(location.hash.slice(1));
  byId("model").replaceChildren(...models.map((model) => element("option", { value: model.name }, model.name)));
  byId("model-choice").hidden = models.length < 2;
  if (!models.length) throw new Error("the service has no model");
  const model = models.find((one) => one.name === wanted.get("model")) ?? models[0];
  await openModel(model, { sensor: wanted.get("sensor"), time: knownTime(model, wanted.get("time")) });
}

/** Shows the forecast of a moment, by the model of now: a newer one may have come while the page was open. */
async function showMoment(time) {
  const before = state.model;
  const { models } = await ask("/v1/models");
  if (state.moment !== time || state.model !== before) return; // somebody went on meanwhile
  const model = models.find((one) => one.name === before.name) ?? before;
  Object.assign(state, { models, model, latest: null }); // readings may have come, or been withdrawn
  if (model.version !== before.version) {
    await openModel(model, { sensor: state.sensor, time: knownTime(model, time) });
  } else {
    showOverview();
    refreshSensor();
  }
}

/** Returns the time of an address if the model can be asked for it, else null: the latest. */
function knownTime(model, time) {
  const [first, asked, last] = [model.first_origin, time, model.last_origin].map((one) => Date.parse(one ?? ""));
  return first <= asked && asked <= last ? time : null;
}

function refreshSensor() {
  return state.sensor === null ? undefined : panel.refresh(state.sensors.get(state.sensor));
}

async function openModel(model, { sensor = null, time = null } = {}) {
  close();
  byId("loading").hidden = false;
  byId("model").value = model.name;
  Object.assign(state, { model, moment: time, latest: null, rows: new Map() });
  const network = await ask("/v1/sensors", { model: model.name });
  if (state.model !== model) return; // another was chosen meanwhile
  state.sensors = new Map(network.sensors.map((one) => [one.id, one]));
  byId("loading").hidden = true;
  byId("workspace").hidden = false;
  byId("notice").hidden = true;
  writeModel(model, network);
  map.setNetwork(network);
  list.setNetwork(network.sensors);
  await showOverview();
  if (state.sensors.has(sensor)) choose(sensor, false);
  whenIdle(() => loadPlotly().catch(() => {})); // fetched ahead; whoever needs it will see what is wrong with it
}

function writeModel(model, network) {
  document.title = `${model.name} – candor`;
  const size = `${counted(network.sensors.length, "sensor")}, ${counted(network.edges.length, "edge")}`;
  const what = model.data ? `${model.model} on ${model.data}` : model.model;
  const ahead = `${duration(model.horizon * model.interval_seconds)} ahead`;
  byId("summary").textContent = [what, size, ahead, `times in ${model.zone}`].join(" · ");
  const made = model.made ? `, made ${moment(model.made)}` : "";
  byId("foot").textContent = `Model ${model.name}, version ${model.version}${made}.`;
  const notes = [];
  if (!network.edges.length) notes.push("This network has no edges: nothing travels from sensor to sensor.");
  if (!network.has_coordinates && network.sensors.length > 1) {
    notes.push("No coordinates are known: sensors lie where the drawing has room.");
  }
  byId("map-note").dataset.notes = notes.join(" ");
}

/** Colours map and list by the forecast of the chosen moment. */
async function showOverview() {
  const { model, moment: time } = state;
  const signal = signalForOverview();
  byId("workspace").setAttribute("aria-busy", "true");
  try {
    const overview = await (time ? askOnce : ask)("/v1/overview", { model: model.name, time }, { signal, model });
    state.rows = new Map(overview.sensors.map((row) => [row.id, row]));
    if (!time) state.latest = overview.time;
    byId("notice").hidden = true;
  } catch (error) {
    if (error.name === "AbortError") return;
    tell(error, showOverview);
    state.rows = new Map();
  }
  moments.setModel(model, state.latest ?? model.last_origin, time);
  paint();
  byId("workspace").setAttribute("aria-busy", "false");
}

function paint() {
  const { model, rows } = state;
  if (!model) return;
  const all = [...rows.values()];
  const hasWidths = all.some((row) => row.width !== null);
  const widths = document.querySelector("input[value=uncertainty]");
  widths.disabled = !hasWidths;
  if (!hasWidths) document.querySelector("input[value=change]").checked = true;
  const measure = MEASURES[document.querySelector("input[name=measure]:checked").value];
  const made = makePaint(measure, all);
  byId("map-title").textContent = paintTitle(made, next(model.horizon * model.interval_seconds));
  byId("legend").replaceChildren(...(all.length ? legendOf(made) : []));
  const missing = all.length && !hasWidths ? " This model gives no intervals." : "";
  byId("map-note").textContent = `${measure.note}${missing} ${byId("map-note").dataset.notes}`.trim();
  state.paint = made;
  map.setPaint(made, rows);
  list.setPaint(made, rows);
}

/** Returns the words that a hover over the map shows. */
function describe(id) {
  if (!state.paint) return []; // nothing is forecast yet
  const [sensor, row, { measure }] = [state.sensors.get(id), state.rows.get(id), state.paint];
  const value = row ? measure.value(row) : null;
  const words = Number.isFinite(value) ? amount(value, row.unit, measure.write) : measure.missing;
  return [element("strong", {}, nameOf(sensor)), element("span", {}, words)];
}

/** Draws on the map what reached the chosen sensor, and says what the lines mean. */
function showReasons(id, reasons) {
  if (id !== state.sensor) return;
  map.setChosen(id, reasons);
  const signs = [
    ["forward", "arrived along edges", reasons?.flows.some((flow) => flow.direction === "forward")],
    ["reverse", "arrived against edges", reasons?.flows.some((flow) => flow.direction === "reverse")],
    ["alike", "listened to", reasons?.peers.length],
  ];
  const shown = signs.filter(([, , isThere]) => isThere);
  byId("signs").replaceChildren(
    ...shown.map(([kind, words]) => element("li", {}, element("span", { class: kind, "aria-hidden": "true" }), words)),
  );
}

/** Lists what the service found to say about the readings. */
function showFindings(findings) {
  const rows = findings.map(({ what, where, hint }) => (
    element("li", {}, `${where ? `${where}: ` : ""}${what}${hint ? ` (${hint})` : ""}`)
  ));
  const title = element("summary", {}, `${counted(rows.length, "remark")} on the readings`);
  const folded = element("details", {}, title, element("ul", {}, ...rows));
  byId("findings").replaceChildren(...(rows.length ? [folded] : []));
}

function choose(id, isByKey) {
  state.sensor = id;
  byId("panes").classList.add("has-sensor");
  showReasons(id, null);
  list.setChosen(id);
  refreshSensor();
  keepAddress();
  byId("status").textContent = `${nameOf(state.sensors.get(id))} is open.`;
  if (isByKey) panel.focus();
  const isNarrow = window.matchMedia("(max-width: 60rem)").matches;
  if (isNarrow || isByKey) byId("sensor").scrollIntoView({ block: isNarrow ? "start" : "nearest" });
}

function close() {
  const [id, hadFocus] = [state.sensor, byId("sensor").contains(document.activeElement)];
  state.sensor = null;
  panel.close();
  byId("panes").classList.remove("has-sensor");
  map.setChosen(null, null);
  byId("signs").replaceChildren();
  byId("findings").replaceChildren();
  list.setChosen(null);
  if (id && state.model) keepAddress();
  if (id && hadFocus) list.focus(id);
}

function keepAddress() {
  const kept = { model: state.model.name, sensor: state.sensor, time: state.moment };
  const given = Object.entries(kept).filter(([, value]) => value !== null);
  history.replaceState(null, "", `#${new URLSearchParams(given)}`);
}

/** Says what went wrong: asks for a token, or offers to try again. */
function tell(error, again) {
  byId("loading").hidden = true;
  byId("workspace").setAttribute("aria-busy", "false");
  if (error.kind === "token") {
    askForToken();
    return;
  }
  const retry = element("button", { type: "button", click: () => attempt(again) }, "Try again");
  byId("notice").replaceChildren(element("span", {}, sentence(error)), retry);
  byId("notice").hidden = false;
}

function askForToken() {
  byId("workspace").hidden = true;
  byId("notice").hidden = true;
  byId("token-form").hidden = false;
  byId("token-trouble").textContent = hasToken() ? "That token was not accepted." : "";
  byId("token").focus();
}

async function attempt(action) {
  byId("notice").hidden = true;
  try {
    await action();
  } catch (error) {
    tell(error, action);
  }
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(byId("token").value);
  byId("token").value = "";
  attempt(start);
});
byId("model").addEventListener("change", () => {
  const model = state.models.find((one) => one.name === byId("model").value);
  attempt(() => openModel(model).then(keepAddress));
});
for (const input of document.querySelectorAll("input[name=measure]")) input.addEventListener("change", paint);
byId("zoom-in").addEventListener("click", () => map.zoom(1.6));
byId("zoom-out").addEventListener("click", () => map.zoom(1 / 1.6));
byId("zoom-fit").addEventListener("click", () => map.showAll());
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state.sensor) close();
});
onTheme(() => {
  paint();
  panel.redraw();
});
attempt(start);
