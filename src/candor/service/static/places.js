// Where things are drawn on the map, in pixels: sensors, bent edges with arrows, and names that cover nothing.

const ROOM = 0.13; // of the frame that is left free on each side, for names and bent edges
const MOST_ROOM = 80; // pixels
const BEND = 0.12; // how far an edge swings out, of its length: edges along one river would lie on one another
const ARROW_AT = 0.62; // of the way
const ROUNDS = 12; // of pushing apart
const MOST_PUSHED = 600; // sensors; among more there is no room to push into
const GAP = 10; // pixels between a point and its label: room for the rings that mark points
const LINE = 14; // pixels, the height of a label
const TRIES = 4; // of placing labels

/** Returns points, whose y grows upwards, in pixels: as large as the frame allows, in the middle, zoomed and moved. */
export function fit(points, { width, height }, view) {
  const across = extent(points.map((point) => point.x));
  const up = extent(points.map((point) => point.y));
  const inner = (length) => length - 2 * Math.min(ROOM * length, MOST_ROOM);
  const scales = [inner(width) / across.length, inner(height) / up.length].filter(Number.isFinite);
  const scale = scales.length ? Math.max(Math.min(...scales), 0) : 0; // a single place has no length
  return points.map((point) => ({
    x: width / 2 + view.zoom * scale * (point.x - across.middle) + view.x,
    y: height / 2 - view.zoom * scale * (point.y - up.middle) + view.y,
  }));
}

/** Returns width through height of a frame that suits the points. */
export function aspectOf(points) {
  const [across, up] = [extent(points.map((point) => point.x)), extent(points.map((point) => point.y))];
  const aspect = across.length / up.length;
  return Number.isFinite(aspect) ? Math.min(Math.max(aspect, 0.9), 2) : 1.4; // a line is given some room
}

function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return values.length ? { middle: (low + high) / 2, length: high - low } : { middle: 0, length: 0 };
}

/** Pushes points apart that are nearer to one another than `least` pixels. */
export function pushApart(points, least) {
  if (points.length > MOST_PUSHED) return;
  for (let round = 0; round < ROUNDS; round += 1) {
    let isCalm = true;
    for (let one = 1; one < points.length; one += 1) {
      for (let other = 0; other < one; other += 1) isCalm = !push(points[one], points[other], least, one) && isCalm;
    }
    if (isCalm) return;
  }
}

function push(one, other, least, place) {
  const [x, y] = [one.x - other.x, one.y - other.y];
  if (Math.abs(x) >= least || Math.abs(y) >= least) return false;
  const distance = Math.hypot(x, y);
  if (distance >= least) return false;
  // Points on one another part in a direction that depends on nothing but their place in the list.
  const angle = distance > 1e-6 ? Math.atan2(y, x) : 2.4 * place;
  const half = (least - distance) / 2 + 0.01;
  one.x += half * Math.cos(angle);
  one.y += half * Math.sin(angle);
  other.x -= half * Math.cos(angle);
  other.y -= half * Math.sin(angle);
  return true;
}

/** Returns the paths of a bent line from one point to another and of its arrow; they swing to the left of the way. */
export function bentLine(start, end, arrow) {
  const [x, y] = [end.x - start.x, end.y - start.y];
  const corner = { x: start.x + x / 2 + 2 * BEND * y, y: start.y + y / 2 - 2 * BEND * x };
  const line = `M${pixel(start)}Q${pixel(corner)} ${pixel(end)}`;
  const length = Math.hypot(x, y);
  if (length < 3 * arrow) return { line, head: "" };
  const [rest, way] = [1 - ARROW_AT, ARROW_AT];
  const middle = {
    x: rest * rest * start.x + 2 * rest * way * corner.x + way * way * end.x,
    y: rest * rest * start.y + 2 * rest * way * corner.y + way * way * end.y,
  };
  const slope = {
    x: rest * (corner.x - start.x) + way * (end.x - corner.x),
    y: rest * (corner.y - start.y) + way * (end.y - corner.y),
  };
  return { line, head: arrowHead(middle, slope, arrow) };
}

function arrowHead(tip, slope, size) {
  const length = Math.hypot(slope.x, slope.y) || 1;
  const [x, y] = [(slope.x / length) * size, (slope.y / length) * size];
  const left = { x: tip.x - x - 0.55 * y, y: tip.y - y + 0.55 * x };
  const right = { x: tip.x - x + 0.55 * y, y: tip.y - y - 0.55 * x };
  return `M${pixel({ x: tip.x + x * 0.4, y: tip.y + y * 0.4 })}L${pixel(left)}L${pixel(right)}Z`;
}

function pixel({ x, y }) {
  return `${x.toFixed(1)} ${y.toFixed(1)}`;
}

/**
 * Returns where labels of such lengths in pixels go, by the rule of the package's figures (render/figures/labels.py):
 * points in a crowd choose first, whoever was left out chooses first next time, and a label that would cover a point, a
 * label or the frame is null.
 */
export function placeLabels(points, lengths, radius, frame) {
  let order = crowdedFirst(points);
  let best = null;
  for (let round = 0; round < TRIES; round += 1) {
    const labels = placeInOrder(points, lengths, radius, frame, order);
    const without = order.filter((place) => labels[place] === null);
    if (best === null || without.length < best.filter((label) => label === null).length) best = labels;
    if (!without.length) break;
    order = [...without, ...order.filter((place) => labels[place] !== null)];
  }
  return best;
}

function crowdedFirst(points) {
  const nearness = points.map((one) => points.reduce((sum, other) => (
    one === other ? sum : sum + 1 / Math.max(Math.hypot(one.x - other.x, one.y - other.y), 0.1)
  ), 0));
  return [...points.keys()].sort((one, other) => nearness[other] - nearness[one]);
}

function placeInOrder(points, lengths, radius, { width, height }, order) {
  const around = ({ x, y }) => ({ left: x - radius, right: x + radius, top: y - radius, bottom: y + radius });
  const taken = points.map(around);
  const labels = points.map(() => null);
  for (const place of order) {
    for (const box of candidates(points[place], lengths[place], radius + GAP)) {
      const isInside = box.left >= 2 && box.right <= width - 2 && box.top >= 2 && box.bottom <= height - 2;
      if (!isInside || taken.some((other, owner) => owner !== place && overlap(box, other))) continue;
      taken.push(box);
      labels[place] = { x: box.left, y: box.bottom - 4 };
      break;
    }
  }
  return labels;
}

function candidates({ x, y }, length, gap) {
  const middle = y - LINE / 2;
  const lefts = [x + gap, x - gap - length, x - length / 2, x - length / 2, x + gap / 2, x - gap / 2 - length];
  const tops = [middle, middle, y - gap - LINE, y + gap, y - gap - LINE / 2 - 3, y + gap - LINE / 2 + 3];
  return lefts.map((left, place) => ({ left, right: left + length, top: tops[place], bottom: tops[place] + LINE }));
}

function overlap(one, other) {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}
