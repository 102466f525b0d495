// Particles: the density before and after, the halos that an error bound breaks, and the same with halos kept.

import { element, counted } from "./dom.js";
import { shown } from "./canvas_values.js";
import { BoundControl } from "./bound_control.js";
import { extent, friendsOfFriends } from "./friends.js";
import { decoded, fitted, sizeOf } from "./lattice.js";
import { halosOf, matched, MERGED, SPLIT } from "./matching.js";
import { circlesOf, haloMarks, Maps } from "./pictures.js";
import { Refused } from "./refusal.js";
import { Section } from "./section.js";

const [SMALLEST, LARGEST] = [0.001, 1]; // bounds, in linking lengths

export class ParticlesSection extends Section {
  // `given`: positions, box (or null), unit, length (of links), least (members of a halo), start (a bound), archives (of
  // some bounds, in which clusters are kept).
  constructor(parent, title, subject, common, machine, given) {
    super(parent, title, subject, common);
    Object.assign(this, { machine, ...given });
    this.row = machine.array("real", given.positions); // for as long as the section exists
    this.count = given.positions.length / 3;
    this.labels = friendsOfFriends(machine, this.row, this.box, this.length);
    this.halos = halosOf(this.labels, this.least);
    this.circles = circlesOf(this.halos, this.positions, this.box);
    const [lower, upper] = extent(machine, this.row);
    Object.assign(this, { lower, upper });
    const side = (axis) => (this.box ? [0, this.box[axis]] : wide(lower[axis], upper[axis]));
    this.frame = [...side(0), ...side(1)];
    this.maps = new Maps(this.positions, this.frame, this.unit);
    const changed = () => this.soon(() => this.update());
    this.control = new BoundControl(this.controls, "error bound of each coordinate", this.unit, changed);
    if (this.archives?.length) this.offerKept();
    this.offer(this.start ?? this.length / 10);
    this.update();
  }

  offerKept() {
    const label = element("label", "wb-live-kept", this.controls);
    this.kept = element("input", "", label, { type: "checkbox" });
    label.append(" keep clusters");
    this.kept.addEventListener("change", () => {
      this.offer(this.control.bound);
      this.soon(() => this.update());
    });
  }

  offer(bound) {
    const only = this.kept?.checked ? this.archives.map(({ bound }) => bound) : null;
    this.control.offer({ least: SMALLEST * this.length, most: LARGEST * this.length, only }, bound);
  }

  update() {
    const { bound } = this.control;
    const lattice = fitted(this.machine.real, this.box, this.lower, this.upper, bound);
    if (!lattice) {
      this.answer.textContent = "This bound is too small for this page, which takes at most 2²¹ cells along an axis. " +
        "The pictures are those of the bound before.";
      return;
    }
    this.machine.scope(() => {
      const [key, values] = decoded(this.machine, this.row, lattice);
      const archive = this.kept?.checked ? this.archives.find((each) => each.bound === bound) : null;
      if (archive) move(values.values, archive);
      const labels = friendsOfFriends(this.machine, values, this.box, this.length);
      const bytes = archive?.bytes ?? sizeOf(this.machine, key, lattice);
      this.found = { ...matched(this.halos, labels, this.least), bytes, archive, decoded: values.values.slice() };
      this.found.same = archive && labels.every((label, particle) => label === this.labels[particle]);
    });
    this.tell();
    this.look();
  }

  tell() {
    const { status, lost, bytes, archive, same } = this.found;
    const [split, merged] = [SPLIT, MERGED].map((kind) => status.reduce((sum, each) => sum + (each === kind), 0));
    const all = counted(status.length);
    const bits = `${((8 * bytes) / this.count).toFixed(2)} bits a particle`;
    const width = 8 * this.positions.BYTES_PER_ELEMENT;
    const smaller = `${shown(this.positions.byteLength / bytes, 3)} times smaller than numbers of ${width} bits`;
    const lostOnes = lost.reduce((sum, each) => sum + each, 0);
    const broken = `${counted(split + merged)} of ${all} halos are broken: ${counted(split)} split, ${counted(merged)} merged; ` +
      `${counted(lostOnes)} ${lostOnes === 1 ? "is lost, as it matches" : "are lost, as they match"} no halo any more.`;
    const kept = same ? `All ${all} halos are kept, and every smaller group, particle for particle.` : broken;
    this.answer.textContent = `${archive ? kept : broken} ${bits}, ${smaller}.`;
    const linked = `${shown(this.length)} ${this.unit}`.trim();
    this.note.textContent = archive
      ? `Kept at ${this.archives.length} bounds when this page was made: the size is that of the archive, in which ` +
        `${counted(archive.index.length)} particles were moved, within the bound. ` +
        "The groups were found again just now, in this page."
      : `Halos are friends-of-friends groups of at least ${this.least} particles, linked up to ${linked}. ` +
        "The size is that of the built-in codec in free order, with an estimate of its tables (within 1% and 30 bytes).";
  }

  zoomed(window) {
    this.window = window.length ? window : null;
    this.soon(() => this.look());
  }

  look() {
    const window = this.window ?? this.frame;
    const name = `${window}`;
    if (this.seen !== name) this.original = this.maps.picture("original", this.positions, window);
    this.seen = name;
    const { status, archive } = this.found;
    const pictures = [this.original, this.maps.picture(archive ? "halos kept" : "decoded", this.found.decoded, window)];
    const before = this.before ??= haloMarks(this.halos, this.circles, new Uint8Array(status.length));
    this.draw(pictures, [before, haloMarks(this.halos, this.circles, status)], this.frame, this.window ?? []);
  }

  read(x, y) {
    const values = this.canvas.panes.map(({ sent: { counts, window, width, height } }) => {
      const [left, right, bottom, top] = window;
      const column = Math.floor(((x - left) / (right - left)) * width);
      const row = Math.floor(((top - y) / (top - bottom)) * height);
      const inside = column >= 0 && column < width && row >= 0 && row < height;
      return inside ? `${counts[row * width + column]} particles` : "";
    });
    return { values, place: "" };
  }
}

function move(values, { index, positions }) {
  index.forEach((particle, number) => values.set(positions.subarray(3 * number, 3 * number + 3), 3 * particle));
}

const wide = (low, high) => (high > low ? [low, high] : [low - 0.5, low + 0.5]);

// Positions of a file of one's own in a periodic box of this length, or in open space.
export function checkedBox(positions, text) {
  if (!text.trim()) return null;
  const length = Number(text);
  if (!(length > 0 && Number.isFinite(length)))
    throw new Refused(`the length of the box must be a positive number; got ${text}`);
  for (const x of positions)
    if (!(x >= 0 && x < length))
      throw new Refused(`in a periodic box, coordinates must be from 0 to below its length, ${length}; one is ${x}`);
  return [length, length, length];
}
