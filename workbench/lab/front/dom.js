// Elements of the page, in one line each; files that the browser saves.

export const SVG = "http://www.w3.org/2000/svg";

// An element with properties and attributes, or with a text.
export function element(tag, className, parent, more = {}) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const [name, value] of Object.entries(typeof more === "string" ? { textContent: more } : more)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  if (parent) parent.append(made);
  return made;
}

export function drawn(tag, parent, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}

// A button of a panel, in JupyterLab's look.
export function panelButton(className, parent, label, title, action) {
  const look = `jupyter-widgets jupyter-button widget-button ${className}`;
  const made = element("button", look, parent, { type: "button", textContent: label, title });
  made.addEventListener("click", action);
  return made;
}

export function saveAs(name, content) {
  const link = element("a", "", null, { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // the browser reads it after the click
}

export function pushButton(parent, label, title, action) {
  const made = element("button", "wb-tool", parent, { type: "button", textContent: label, title });
  made.setAttribute("aria-label", title);
  made.addEventListener("click", action);
  return made;
}

// JupyterLab has shortcuts of single letters, which are not meant here.
export function keepKeys(root) {
  root.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
  });
}

// A button that opens a small sheet over what follows; leaving the sheet or pressing Escape closes it.
export function sheet(parent, label, title) {
  const root = element("details", "wb-sheet", parent);
  const summary = element("summary", "wb-tool", root, { textContent: label, title });
  const content = element("div", "wb-sheet-content", root);
  root.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !root.contains(event.relatedTarget)) root.open = false;
  });
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !root.open) return;
    root.open = false;
    summary.focus();
  });
  return { root, content };
}

let controls = 0;

export function labelled(parent, text, control) {
  controls += 1;
  control.id = `wb-control-${controls}-${Math.random().toString(36).slice(2)}`;
  const row = element("span", "wb-labelled", parent);
  element("label", "", row, { htmlFor: control.id, textContent: text });
  row.append(control);
  return control;
}

export function choice(parent, text, options) {
  const select = labelled(parent, text, element("select", "wb-choice"));
  for (const [value, name] of options) element("option", "", select, { value, textContent: name });
  return select;
}
