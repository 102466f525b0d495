// The content of a page in the browser, for all its views. Python sends what differs as numbered messages; if one is missed,
// the whole content is asked for. Settings of a view are kept for other views, and for a page that is loaded again.

import { Asking } from "./dom.js";

const NOTHING = -1; // the number of a page that shows nothing
const stores = new Map(); // by the name of the widget

// A value as it was before its bytes were moved to the buffers of a message.
function unpacked(value, buffers) {
  if (Array.isArray(value)) return value.map((each) => unpacked(each, buffers));
  if (value === null || typeof value !== "object") return value;
  if ("buffer" in value) return buffers[value.buffer];
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, unpacked(each, buffers)]));
}

export function storeOf({ model, missed, front }) {
  const name = model.get("own_id");
  if (!stores.has(name)) stores.set(name, new Store(model, missed(), front));
  return stores.get(name);
}

class Store {
  constructor(model, missed, front) {
    [this.model, this.front] = [model, front];
    this.views = new Set();
    this.asking = new Asking(() => this.number !== this.newest, () => this.ask());
    this.take();
    this.hear = this.hear.bind(this);
    for (const message of missed) this.hear(...message);
    model.on("change:content", () => this.take());
    model.on("change:settings", () => this.restyle());
    model.on("msg:custom", this.hear);
    model.on("destroy", () => stores.delete(model.get("own_id"))); // else closed panels would stay until the page is left
    this.seen = () => document.hidden || this.ask(); // a machine that slept may have missed anything
  }

  enter(view) {
    if (!this.views.size) document.addEventListener("visibilitychange", this.seen);
    this.views.add(view);
    view.show(Object.keys(this.parts));
  }

  leave(view) {
    this.views.delete(view);
    if (this.views.size) return;
    document.removeEventListener("visibilitychange", this.seen);
    this.asking.stop();
  }

  // From Python.

  take() {
    const { number, parts } = this.model.get("content");
    [this.number, this.newest, this.parts] = [number, Math.max(number, this.newest ?? 0), parts];
    this.tell(Object.keys(parts));
    this.asking.check();
  }

  hear(message, buffers) {
    if (message.part !== undefined) {
      for (const view of this.views) view.hear(message.part, message.message, buffers);
      return;
    }
    this.newest = Math.max(this.newest, message.number);
    if (message.parts && message.number === this.number + 1) this.merge(message, buffers);
    this.asking.check();
  }

  merge({ number, parts, removed }, buffers) {
    this.number = number;
    for (const key of removed) delete this.parts[key];
    for (const [key, fields] of Object.entries(unpacked(parts, buffers))) this.parts[key] = { ...this.parts[key], ...fields };
    this.tell(Object.keys(parts));
  }

  tell(keys) {
    for (const view of this.views) view.show(keys);
  }

  ask(shown = this.number) {
    this.model.send({ number: shown });
  }

  // The whole content, for one who has missed something.
  askAll() {
    this.ask(NOTHING);
  }

  // To Python.

  send(part, message) {
    this.model.send({ part, message });
  }

  settings(part) {
    return this.model.get("settings")[part] ?? {};
  }

  set(part, changed) {
    const settings = this.model.get("settings");
    this.model.set("settings", { ...settings, [part]: { ...settings[part], ...changed } });
    this.model.save_changes();
    this.restyle();
  }

  restyle() {
    for (const view of this.views) view.restyle();
  }
}
