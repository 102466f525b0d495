// A control of native elements. Python owns the value: the browser sends only requests of the user, each with a running
// number, and shows what Python answers. Answers to earlier requests change nothing. One request is under way at a time;
// of those made meanwhile, the newest is sent next.

import { Tabs, element, panelButton } from "./dom.js";

const PATIENCE = 5000; // ms after which a request without an answer no longer holds back the next one
const SLOW = 500; // ms after which the panel says that a request has no answer yet
const FRAME = 350; // ms between two steps that are played, at least
const ONE_GESTURE = 1000; // ms between keys that count as one gesture, which is undone as a whole

export class Control {
  constructor(channel, el) {
    this.channel = channel;
    const { kind, field, shown } = channel.content;
    el.classList.add("wb-control", `wb-control-${kind}`, `wb-control-${field}`);
    this.root = element("div", "wb-control-row", el);
    this.number = shown.answered ?? 0;
    this.edited = false;
    this.keyed = 0;
    this.build(kind, `wb-${Math.random().toString(36).slice(2)}`);
    this.root.addEventListener("keydown", (event) => this.keep(event));
  }

  close() {
    this.pause();
    clearTimeout(this.timer);
    this.answered();
  }

  build(kind, id) {
    const { label: text, name, meaning: title, tabs, unit } = this.channel.content;
    const label = { htmlFor: id, textContent: text, title };
    if (kind !== "toggle" && text) element(tabs ? "span" : "label", "wb-control-name", this.root, tabs ? { ...label, id } : label);
    if (kind === "slider") this.addSlider(id, name, title);
    if (kind === "text") this.addEntry({ id, title });
    if (kind === "choice" && tabs) this.tabs = new Tabs(this.root, name, (position) => this.choose(position), title);
    else if (kind === "choice") this.addList(id, title);
    if (!text) (this.range ?? this.entry ?? this.list)?.setAttribute("aria-label", name);
    if (kind === "toggle") {
      this.box = element("input", "", this.root, { type: "checkbox", id, title });
      this.box.addEventListener("change", () => this.choose(Number(this.box.checked)));
      element("label", "wb-control-name", this.root, label);
    }
    if (unit) element("span", "wb-control-unit", this.root, { textContent: unit });
  }

  addSlider(id, text, title) {
    this.range = element("input", "", this.root, { type: "range", min: 0, step: 1, id, title });
    this.range.addEventListener("pointerdown", () => (this.gesture = Date.now()));
    this.range.addEventListener("keydown", () => {
      if (Date.now() - this.keyed > ONE_GESTURE) this.gesture = Date.now();
      this.keyed = Date.now();
    });
    this.range.addEventListener("input", () => {
      this.preview();
      this.ask({ position: Number(this.range.value) });
    });
    if (this.channel.content.plays) this.addPlay(text);
    if (this.channel.content.editable) this.addEntry({ ariaLabel: `${text}, value`, title });
    else this.readout = element("output", "wb-control-readout", this.root, { htmlFor: id });
  }

  // Plays the positions one after the other, from the first one again if it is at the end.
  addPlay(text) {
    this.player = panelButton("wb-button wb-control-play", this.root, "▶", `play, or pause: ${text}`, () => {
      if (this.playing) this.pause();
      else this.play();
    });
    this.player.setAttribute("aria-label", `play ${text}`);
    this.player.setAttribute("aria-pressed", "false");
    this.range.addEventListener("pointerdown", () => this.pause());
  }

  play() {
    this.gesture = Date.now();
    this.playing = setInterval(() => this.advance(), FRAME);
    this.player.textContent = "❚❚";
    this.player.setAttribute("aria-pressed", "true");
    if (Number(this.range.value) >= Number(this.range.max)) this.go(0);
    else this.advance();
  }

  pause() {
    if (!this.playing) return;
    clearInterval(this.playing);
    this.playing = undefined;
    this.player.textContent = "▶";
    this.player.setAttribute("aria-pressed", "false");
  }

  // What belongs to a position is seen before the next one is asked for.
  advance() {
    if (this.underWay || this.waiting || this.root.closest(".wb-panel")?.querySelector(".wb-content[aria-busy='true']")) return;
    const next = Number(this.range.value) + 1;
    if (next > Number(this.range.max)) this.pause();
    else this.go(next);
  }

  go(position) {
    this.range.value = position;
    this.preview();
    this.ask({ position });
  }

  addEntry(properties) {
    this.entry = element("input", "wb-control-entry", this.root, {
      type: "text", autocomplete: "off", spellcheck: false, ...properties,
    });
    this.entry.addEventListener("input", () => (this.edited = true));
    this.entry.addEventListener("blur", () => this.edited && this.commit());
    this.entry.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.commit();
      if (event.key === "Escape") this.restore();
    });
  }

  addList(id, title) {
    this.list = element("select", "", this.root, { id, title });
    this.list.addEventListener("change", () => this.choose(this.list.selectedIndex));
  }

  // Requests.

  choose(position) {
    this.gesture = Date.now();
    this.ask({ position });
  }

  commit() {
    this.edited = false;
    if (this.root.closest("[inert]")) return; // nobody would answer
    this.gesture = Date.now();
    this.ask({ text: this.entry.value.trim() });
  }

  // Give up an entry: the value that holds is asked for, so that an error message goes away.
  restore() {
    this.entry.value = this.channel.content.shown.text;
    if (this.edited || this.channel.content.shown.refused !== null) this.commit();
  }

  ask(content) {
    this.number = Math.max(this.number, this.channel.content.shown.answered ?? 0) + 1;
    this.waiting = { ...content, number: this.number, gesture: this.gesture ?? Date.now() };
    this.slow ??= setTimeout(() => this.channel.waits(this, true), SLOW);
    if (!this.underWay) this.send();
  }

  answered() {
    if (!this.slow) return;
    clearTimeout(this.slow);
    this.slow = undefined;
    this.channel.waits(this, false);
  }

  // The value that the figures on the page are of.
  settle() {
    this.settled = this.channel.content.shown;
  }

  // Nobody is left to answer: show that value again.
  giveUp() {
    this.pause();
    clearTimeout(this.timer);
    clearTimeout(this.slow);
    this.slow = this.waiting = undefined;
    this.underWay = this.number = 0;
    this.edited = false;
    this.channel.content.shown = this.settled ?? this.channel.content.shown;
    this.show();
  }

  send() {
    this.underWay = this.waiting.number;
    this.channel.send(this.waiting);
    this.waiting = undefined;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.proceed(), PATIENCE);
  }

  proceed() {
    clearTimeout(this.timer);
    this.underWay = 0;
    if (this.waiting) this.send();
  }

  // Plain keys belong to the control; a notebook would take them for its own commands.
  keep(event) {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && event.key !== "Tab";
    if (plain && !(event.shiftKey && event.key === "Enter")) event.stopPropagation();
  }

  // Answers.

  show() {
    const { positions, texts } = this.channel.content;
    const { position = 0, text = "", refused = null, answered = 0 } = this.channel.content.shown;
    if (this.underWay && answered >= this.underWay) this.proceed();
    if (answered < this.number) return;
    this.answered();
    if (this.list) this.fill(texts);
    if (this.list) this.list.selectedIndex = position;
    if (this.tabs) this.tabs.show(texts, position);
    if (this.box) this.box.checked = position === 1;
    if (this.range) {
      this.range.max = positions - 1;
      this.range.disabled = positions < 2;
      this.range.value = position;
      this.tell(text);
    }
    if (this.entry && !this.edited) {
      this.entry.value = this.entry.defaultValue = refused ?? text;
      this.entry.setAttribute("aria-invalid", refused !== null);
    }
  }

  fill(texts) {
    const there = [...this.list.options].map((option) => option.text);
    if (texts.join("\n") === there.join("\n")) return;
    this.list.replaceChildren(...texts.map((text) => new Option(text)));
  }

  // What the position stands for, until Python answers.
  preview() {
    const position = Number(this.range.value);
    const text = this.channel.content.texts[position] ?? String(this.channel.content.least + position);
    this.tell(text);
    if (this.entry) {
      this.edited = false;
      this.entry.value = text;
      this.entry.setAttribute("aria-invalid", false);
    }
  }

  tell(text) {
    const spoken = [text, this.channel.content.shown.unit].filter(Boolean).join(" ");
    this.range.setAttribute("aria-valuetext", spoken);
    if (this.readout) this.readout.textContent = text;
  }
}
