// The map: sensors coloured by what is expected of them, directed edges, and what reached the chosen sensor.
// Drawn as SVG with all edges in a few paths, so that hundreds of sensors and thousands of edges stay quick.

import { svgElement } from "./elements.js";
import { aspectOf, bentLine, fit, placeLabels, pushApart } from "./places.js";
import { nameOf, shortNames } from "./words.js";

const MOST_NAMES = 40; // sensors that carry their names
const [LONGEST_NAME, SHORTER_NAME] = [26, 16]; // letters, on a wide map and on a narrow one
const NARROW = 420; // pixels
const NEAR = 16; // pixels within which a click means a sensor
const CLASSES = ["light", "middling", "heavy"]; // of edges, by weight
const MOST_ZOOM = 24;
const MOST_FLOWS = 30; // edges to the chosen sensor that are drawn, the largest first

/** Returns the map in an SVG element; `choose(id)` is called for a click, `describe(id)` gives the words of a hover. */
export function createMap(svg, tip, choose, describe) {
  const layers = {};
  for (const name of ["edges", "flows", "sensors", "peers", "raised", "labels"]) {
    layers[name] = svg.appendChild(svgElement("g", { class: name }));
  }
  const map = {
    svg, tip, layers, choose, describe,
    sensors: [], edges: [], pixels: [], circles: [], places: new Map(),
    radius: 9, view: { zoom: 1, x: 0, y: 0 }, paint: null, rows: new Map(), chosen: null, reasons: null,
  };
  listen(map);
  new ResizeObserver(() => draw(map)).observe(svg);
  return {
    setNetwork: (network) => setNetwork(map, network),
    setPaint: (paint, rows) => {
      Object.assign(map, { paint, rows });
      colourSensors(map);
    },
    setChosen: (chosen, reasons) => {
      Object.assign(map, { chosen, reasons });
      drawChosen(map);
    },
    zoom: (factor) => {
      const middle = { x: svg.clientWidth / 2, y: svg.clientHeight / 2 };
      zoom(map, factor, map.pixels[map.places.get(map.chosen)] ?? middle);
    },
    showAll: () => {
      map.view = { zoom: 1, x: 0, y: 0 };
      draw(map);
    },
  };
}

function setNetwork(map, network) {
  const { sensors, edges } = network;
  map.sensors = sensors;
  map.places = new Map(sensors.map((sensor, place) => [sensor.id, place]));
  map.edges = edges.filter((edge) => edge.from !== edge.to && map.places.has(edge.from) && map.places.has(edge.to));
  map.radius = sensors.length <= MOST_NAMES ? 9 : sensors.length <= 150 ? 6 : 4.5;
  Object.assign(map, { view: { zoom: 1, x: 0, y: 0 }, rows: new Map(), chosen: null, reasons: null });
  map.circles = sensors.map((sensor, place) => svgElement("circle", { r: map.radius, "data-place": place }));
  map.layers.sensors.replaceChildren(...map.circles);
  map.svg.style.setProperty("--aspect", aspectOf(sensors).toFixed(3));
  const words = `Map of ${sensors.length} sensors and ${map.edges.length} directed edges`;
  map.svg.setAttribute("aria-label", `${words}; the list of sensors holds the same in words`);
  draw(map);
}

function draw(map) {
  map.svg.classList.toggle("zoomed", map.view.zoom > 1);
  const size = { width: map.svg.clientWidth, height: map.svg.clientHeight };
  if (!size.width || !size.height) return;
  const isNamed = map.sensors.length <= MOST_NAMES;
  map.pixels = fit(map.sensors, size, map.view);
  pushApart(map.pixels, isNamed ? 2.5 * map.radius : 2 * map.radius);
  map.circles.forEach((circle, place) => {
    circle.setAttribute("cx", map.pixels[place].x.toFixed(1));
    circle.setAttribute("cy", map.pixels[place].y.toFixed(1));
  });
  drawEdges(map, isNamed ? 8 : 4.5);
  drawLabels(map, isNamed ? size : null);
  drawChosen(map);
}

function drawEdges(map, arrow) {
  const weights = map.edges.map((edge) => edge.weight ?? 0).sort((one, other) => one - other);
  const bounds = [1 / 3, 2 / 3].map((share) => weights[Math.floor(share * weights.length)]);
  const paths = CLASSES.map(() => ({ lines: [], heads: [] }));
  map.edges.forEach((edge) => {
    const rank = bounds.filter((bound) => (edge.weight ?? 0) > bound).length;
    const { line, head } = lineBetween(map, edge.from, edge.to, arrow);
    paths[rank].lines.push(line);
    paths[rank].heads.push(head);
  });
  const drawn = paths.flatMap(({ lines, heads }, rank) => [
    svgElement("path", { class: `line ${CLASSES[rank]}`, d: lines.join("") }),
    svgElement("path", { class: `head ${CLASSES[rank]}`, d: heads.join("") }),
  ]);
  map.layers.edges.replaceChildren(...drawn);
}

function lineBetween(map, from, to, arrow) {
  return bentLine(map.pixels[map.places.get(from)], map.pixels[map.places.get(to)], arrow);
}

function drawLabels(map, size) {
  if (!size) {
    map.layers.labels.replaceChildren();
    return;
  }
  const texts = shortNames(map.sensors.map(nameOf), size.width < NARROW ? SHORTER_NAME : LONGEST_NAME);
  const labels = texts.map((text) => svgElement("text", {}, text));
  map.layers.labels.replaceChildren(...labels);
  const lengths = labels.map((label) => label.getComputedTextLength());
  placeLabels(map.pixels, lengths, map.radius, size).forEach((place, index) => {
    if (place === null) labels[index].remove();
    else {
      labels[index].setAttribute("x", place.x.toFixed(1));
      labels[index].setAttribute("y", place.y.toFixed(1));
    }
  });
}

function colourSensors(map) {
  map.circles.forEach((circle, place) => {
    const fill = map.paint?.fill(map.rows.get(map.sensors[place].id)) ?? null;
    circle.classList.toggle("unknown", fill === null);
    circle.style.fill = fill ?? "";
  });
  raiseChosen(map);
}

/** Draws the chosen sensor once more over all others: where they stand close, they would cover it. */
function raiseChosen(map) {
  const circle = map.circles[map.places.get(map.chosen)];
  map.layers.raised.replaceChildren(...(circle ? [circle.cloneNode()] : []));
}

/** Draws what reached the chosen sensor along edges, its peers, or its edges where no explanation is known. */
function drawChosen(map) {
  const place = map.places.get(map.chosen);
  map.svg.classList.toggle("has-chosen", place !== undefined);
  map.circles.forEach((circle, index) => {
    circle.classList.toggle("chosen", index === place);
    circle.setAttribute("r", index === place ? map.radius + 3 : map.radius);
  });
  const flows = place === undefined ? [] : flowsOf(map);
  const largest = flows.reduce((most, flow) => Math.max(most, flow.size), 0) || 1;
  const drawn = flows.flatMap(({ from, to, size, kind }) => {
    const width = 1.5 + 4.5 * (size / largest);
    const { line, head } = lineBetween(map, from, to, 5 + 1.6 * width);
    const path = svgElement("path", { class: `line ${kind}`, d: line });
    path.style.strokeWidth = `${width.toFixed(1)}px`;
    return [path, svgElement("path", { class: `head ${kind}`, d: head })];
  });
  map.layers.flows.replaceChildren(...drawn);
  const peers = new Set(place === undefined ? [] : (map.reasons?.peers ?? []).slice(0, 5).map((peer) => peer.sensor));
  const rings = [...peers].filter((id) => id !== map.chosen && map.places.has(id)).map((id) => {
    const { x, y } = map.pixels[map.places.get(id)];
    return svgElement("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: map.radius + 5 });
  });
  map.layers.peers.replaceChildren(...rings);
  raiseChosen(map);
}

function flowsOf(map) {
  if (map.reasons) {
    const known = map.reasons.flows.filter((flow) => map.places.has(flow.sensor)).slice(0, MOST_FLOWS);
    return known.map((flow) => ({ from: flow.sensor, to: map.chosen, size: flow.size, kind: flow.direction }));
  }
  const touching = map.edges.filter((edge) => edge.from === map.chosen || edge.to === map.chosen);
  return touching.map((edge) => ({ from: edge.from, to: edge.to, size: 0, kind: "plain" }));
}

function listen(map) {
  const { svg } = map;
  let drag = null;
  let frame = 0;
  const drawSoon = () => {
    cancelAnimationFrame(frame); // at most once for each picture on the screen
    frame = requestAnimationFrame(() => draw(map));
  };
  svg.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, view: { ...map.view }, isMoved: false };
  });
  svg.addEventListener("pointermove", (event) => {
    if (!drag || !event.buttons) return showTip(map, event);
    const [x, y] = [event.clientX - drag.x, event.clientY - drag.y];
    if (Math.hypot(x, y) < 5 && !drag.isMoved) return undefined;
    drag.isMoved = true;
    if (map.view.zoom === 1) return undefined; // the whole network is in sight already
    svg.setPointerCapture(event.pointerId);
    map.view = { ...drag.view, x: drag.view.x + x, y: drag.view.y + y };
    return drawSoon();
  });
  svg.addEventListener("pointerleave", () => showTip(map, null));
  svg.addEventListener("click", (event) => {
    const place = drag?.isMoved ? -1 : nearest(map, event);
    drag = null;
    if (place >= 0) map.choose(map.sensors[place].id);
  });
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // a plain wheel scrolls the page
    event.preventDefault();
    zoom(map, Math.exp(-event.deltaY / 200), pointer(map, event));
  }, { passive: false });
}

function pointer(map, event) {
  const frame = map.svg.getBoundingClientRect();
  return { x: event.clientX - frame.left, y: event.clientY - frame.top };
}

function nearest(map, event) {
  const at = pointer(map, event);
  let [found, least] = [-1, Math.max(NEAR, map.radius)];
  map.pixels.forEach(({ x, y }, place) => {
    const distance = Math.hypot(x - at.x, y - at.y);
    if (distance < least) [found, least] = [place, distance];
  });
  return found;
}

function zoom(map, factor, centre) {
  const { svg, view } = map;
  const wanted = Math.min(Math.max(view.zoom * factor, 1), MOST_ZOOM);
  const grown = wanted / view.zoom;
  const middle = { x: centre.x - svg.clientWidth / 2, y: centre.y - svg.clientHeight / 2 };
  const moved = { x: middle.x - grown * (middle.x - view.x), y: middle.y - grown * (middle.y - view.y) };
  map.view = wanted === 1 ? { zoom: 1, x: 0, y: 0 } : { zoom: wanted, ...moved };
  draw(map);
}

function showTip(map, event) {
  const place = event ? nearest(map, event) : -1;
  map.tip.hidden = place < 0;
  map.svg.classList.toggle("pointing", place >= 0);
  if (place < 0) return;
  map.tip.replaceChildren(...map.describe(map.sensors[place].id));
  const { x, y } = map.pixels[place];
  const isLeft = x > map.svg.clientWidth / 2;
  map.tip.style.left = isLeft ? "auto" : `${x + 14}px`;
  map.tip.style.right = isLeft ? `${map.svg.clientWidth - x + 14}px` : "auto";
  map.tip.style.top = `${Math.max(y - 18, 4)}px`;
}
