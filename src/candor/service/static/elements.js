// Makes elements. Whatever comes from the service becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** Returns an HTML element with attributes and children; texts among the children stay texts. */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Returns an SVG element with attributes and children. */
export function svgElement(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Returns the element of the page with this id. */
export function byId(id) {
  return document.getElementById(id);
}

/** Returns a function that calls `action` once nobody has called it for some milliseconds. */
export function debounced(action, milliseconds) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), milliseconds);
  };
}
