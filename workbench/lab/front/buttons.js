// Buttons in rows, words between them, and those that take something along.

import { ARROWS, PREPARING, element, panelButton, relabel, saveAs } from "./dom.js";

const TYPED_INTO = "input, select, textarea, [contenteditable='true']";
const COPIED = 1500; // ms that a button says so
let views = 0;

// A button of Python's. Its key is heard anywhere in the panel, but where one types.
export class Button {
  constructor(channel, el) {
    this.channel = channel;
    const { label, tooltip, primary, key } = channel.content;
    this.button = panelButton(primary ? "wb-button mod-primary" : "wb-button", el, label, tooltip, () => channel.send({}));
    if (key) channel.keys(key, () => this.button.disabled || channel.send({}), TYPED_INTO);
  }

  show({ label, enabled, pressed }) {
    this.button.textContent = label;
    this.button.disabled = !enabled;
    if (pressed !== null) this.button.setAttribute("aria-pressed", String(pressed));
    this.button.classList.toggle("mod-active", pressed === true);
  }
}

export class Words {
  constructor(channel, el) {
    el.classList.toggle("wb-fills", channel.content.wide);
    this.root = element("span", "wb-words", el, { role: "status" });
  }

  show({ text }) {
    this.root.textContent = text;
  }
}

// HTML that Python has made.
export class Html {
  constructor(channel, el) {
    this.root = element("div", "wb-html", el);
    this.root.addEventListener("keydown", (event) => this.walk(event));
  }

  show({ html }) {
    if (this.html === html) return;
    this.html = html;
    const at = this.terms().indexOf(document.activeElement);
    this.root.innerHTML = html;
    if (at >= 0) this.reach(at);
  }

  terms() {
    return [...this.root.querySelectorAll(".wb-term")];
  }

  // The names of figures are one stop of the Tab key, and arrow keys go from each to the next.
  walk(event) {
    const step = ARROWS[event.key];
    const at = this.terms().indexOf(event.target);
    if (!step || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    this.reach(at + step);
  }

  reach(number) {
    const terms = this.terms();
    const chosen = terms.at(number % terms.length);
    for (const term of terms) term.tabIndex = term === chosen ? 0 : -1;
    chosen?.focus();
  }
}

// Pages from another machine may have no access to the clipboard, so there is a second way.
async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = element("textarea", "", document.body, { value: text });
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("the browser refused");
}

export class Copy {
  constructor(channel, el) {
    const { label } = channel.content;
    const button = panelButton("wb-copy", el, label, "copy the Python that gives what is shown", async () => {
      try {
        await copy(channel.content.text);
        relabel(button, "copied");
      } catch {
        relabel(button, "select it below");
      }
      setTimeout(() => (button.textContent = label), COPIED);
    });
  }

  show() {}
}

// Python makes the file when the button is pressed, and sends its bytes.
export class Download {
  constructor(channel, el) {
    this.own = ++views;
    this.label = channel.content.label;
    this.button = panelButton("wb-download", el, this.label, "save a file on this machine", () => {
      this.button.disabled = true;
      relabel(this.button, PREPARING);
      channel.send({ view: this.own });
    });
  }

  show() {}

  hear({ view, name }, buffers) {
    if (view !== this.own) return;
    this.button.disabled = false;
    this.button.textContent = this.label;
    if (name) saveAs(name, new Blob([buffers[0]]));
  }
}

function tell(output, message, failed) {
  output.textContent = message;
  output.classList.toggle("wb-error", failed);
  if (failed) output.setAttribute("role", "alert");
  else output.removeAttribute("role");
}

export class Report {
  constructor(channel, el) {
    panelButton("wb-button", el, "save report", "write the report where the kernel runs", () => channel.send({}));
    this.message = element("span", "wb-said", el);
  }

  show({ message, failed }) {
    tell(this.message, message, failed);
  }
}

// A name for an archive, and the question whether another one of this name is to go.
export class Saving {
  constructor(channel, el) {
    const id = `wb-${Math.random().toString(36).slice(2)}`;
    element("label", "wb-control-name", el, { htmlFor: id, textContent: "file name" });
    const title = "a folder, or one file when it ends in .zip";
    this.name = element("input", "wb-control-entry wb-file-name", el, { type: "text", id, title, spellcheck: false });
    this.name.addEventListener("keydown", (event) => event.stopPropagation());
    const send = (does) => () => channel.send({ does, name: this.name.value });
    this.name.addEventListener("change", () => channel.send({ name: this.name.value }));
    panelButton("wb-button", el, "save archive", "write the archive where the kernel runs", send("save"));
    this.message = element("span", "wb-said", el);
    this.asked = element("span", "wb-asked", el);
    panelButton("wb-button", this.asked, "replace it", "replace the archive of this name", send("replace"));
    panelButton("wb-button", this.asked, "keep it", "leave the archive of this name as it is", send("keep"));
  }

  show({ name, message, failed, asks }) {
    if (document.activeElement !== this.name) this.name.value = this.name.defaultValue = name;
    tell(this.message, message, failed);
    this.asked.hidden = !asks;
  }
}
