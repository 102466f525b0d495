// The content of a page in the browser, for all its views. Python sends what differs as numbered messages; if one is missed,
// the whole content is asked for. Settings of a view are kept for other views, and for a page that is loaded again.

const [SOON, LATEST] = [300, 30_000]; // ms between two questions to Python: the first interval and the longest one
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
    this.take();
    this.hear = this.hear.bind(this);
    for (const message of missed) this.hear(...message);
    model.on("change:content", () => this.take());
    model.on("change:looks", () => this.restyle());
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
    clearTimeout(this.asking);
    this.asking = undefined;
  }

  // From Python.

  take() {
    const { number, parts } = this.model.get("content");
    [this.number, this.newest, this.parts] = [number, Math.max(number, this.newest ?? 0), parts];
    this.tell(Object.keys(parts));
    this.compare();
  }

  hear(message, buffers) {
    if (message.part !== undefined) {
      for (const view of this.views) view.hear(message.part, message.said, buffers);
      return;
    }
    this.newest = Math.max(this.newest, message.number);
    if (message.parts && message.number === this.number + 1) this.merge(message, buffers);
    this.compare();
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

  // Ask for the content until it is the newest.
  compare() {
    if (this.number === this.newest) {
      clearTimeout(this.asking);
      this.asking = this.wait = undefined;
    } else if (!this.asking) {
      this.wait = Math.min(2 * (this.wait ?? SOON / 2), LATEST);
      this.asking = setTimeout(() => {
        this.asking = undefined;
        this.ask();
        this.compare();
      }, this.wait);
    }
  }

  ask(shown = this.number) {
    this.model.send({ number: shown });
  }

  // To Python.

  send(part, said) {
    this.model.send({ part, said });
  }

  looks(part) {
    return this.model.get("looks")[part] ?? {};
  }

  look(part, settings) {
    const looks = this.model.get("looks");
    this.model.set("looks", { ...looks, [part]: { ...looks[part], ...settings } });
    this.model.save_changes();
    this.restyle();
  }

  restyle() {
    for (const view of this.views) view.restyle();
  }
}
