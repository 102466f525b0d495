// The halos of a cloud: their colours, their names, and the one under the pointer.

import { within } from "./cloud_camera.js";
import { HALO_BITS, hex } from "./cloud_points.js";
import { counted } from "./dom.js";

const LOOKED_AT = 262144; // points that are searched under the pointer
const NEARBY = 9; // pixels

const column = (bytes, Kind) => bytes && new Kind(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));

export class Halos {
  constructor(scene, shading) {
    const { halos } = scene;
    this.shading = shading;
    this.words = scene.words;
    this.ranks = column(halos.ranks, Int32Array);
    this.members = column(halos.members, Int32Array);
    this.sizes = column(halos.sizes, Int32Array);
    this.status = column(halos.status, Uint8Array);
    this.centres = column(halos.centres, Float32Array);
    this.radii = column(halos.radii, Float32Array);
    this.count = this.members.length;
    const longest = Math.max(...scene.lengths);
    this.sides = scene.lengths.map((length) => length / longest);
    this.steps = scene.steps;
  }

  hue(number, coloured) {
    const { hues, other } = this.shading;
    const rank = this.ranks[number - 1];
    return rank < coloured ? hues[rank % hues.length] : other;
  }

  // The numbers of the halos in the frame, in the order of their ranks.
  inFrame() {
    const numbers = [];
    this.ranks.forEach((rank, at) => {
      if (rank < this.count) numbers[rank] = at + 1;
    });
    return numbers;
  }

  // The colour and light of each halo, for the graphics processor.
  palette(colouring, coloured) {
    const bytes = new Uint8Array(128 * 128 * 4);
    const { light, status, none } = this.shading;
    const put = (number, hue, share) => bytes.set([...hex(hue), Math.round(255 * share)], 4 * number);
    put(0, none, light.none);
    for (let number = 1; number <= this.count; number++) {
      if (colouring === "density") put(number, none, light.none);
      else if (colouring === "status" && this.status) put(number, status[this.words[this.status[number - 1]]], light.coloured);
      else put(number, this.hue(number, coloured), this.ranks[number - 1] < coloured ? light.coloured : light.other);
    }
    return bytes;
  }

  // The halo before or after this one by rank; the first if there is none.
  next(number, change) {
    const numbers = this.inFrame();
    const rank = number ? this.ranks[number - 1] + change : 0;
    return numbers[within(rank, 0, numbers.length - 1)] ?? 0;
  }

  name(number) {
    const name = `halo ${number}: ${counted(this.members[number - 1])} members`;
    if (!this.status) return name;
    const [word, after] = [this.words[this.status[number - 1]], this.sizes[number - 1]];
    if (word === "intact") return `${name}, intact`;
    return `${name}, ${word} (${after ? `${counted(after)} afterwards` : "now part of a larger group"})`;
  }

  place(number) {
    return [0, 1, 2].map((axis) => this.centres[3 * (number - 1) + axis] - this.sides[axis] / 2);
  }

  radius(number) {
    return 2 * this.radii[number - 1]; // which is a root mean square
  }

  // The number of the halo under the pointer, 0 for none: that of most points near it, or the one whose centre is nearest.
  at(x, y, camera, pane, points, drawn) {
    const votes = new Map();
    const matrix = camera.matrix(pane);
    const last = 4 * Math.min(drawn, LOOKED_AT, points.length / 4);
    const [wide, high, steps] = [pane.width / 2, pane.height / 2, this.steps];
    const [m0, m1, m3, m4, m5, m7, m8, m9, m11, m12, m13, m15] = [0, 1, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15].map((i) => matrix[i]);
    for (let i = 0; i < last; i += 4) {
      const halo = points[i + 3] & HALO_BITS;
      if (!halo) continue;
      const px = points[i];
      const py = points[i + 1];
      const pz = points[i + 2];
      const depth = m3 * px + m7 * py + m11 * pz + m15 * steps;
      if (depth <= 0) continue;
      const dx = wide + (wide * (m0 * px + m4 * py + m8 * pz + m12 * steps)) / depth - x;
      if (dx > NEARBY || dx < -NEARBY) continue;
      const dy = high - (high * (m1 * px + m5 * py + m9 * pz + m13 * steps)) / depth - y;
      const apart = dx * dx + dy * dy;
      if (apart < NEARBY * NEARBY) votes.set(halo, (votes.get(halo) ?? 0) + 1 / (4 + apart));
    }
    let [best, most] = [0, 0];
    for (const [halo, vote] of votes) if (vote > most) [best, most] = [halo, vote];
    return best || this.nearest(x, y, camera, pane);
  }

  nearest(x, y, camera, pane) {
    let [best, least] = [0, 1];
    for (let number = 1; number <= this.count; number++) {
      const seen = camera.seen(this.place(number), pane);
      if (!seen) continue;
      const size = Math.max(4, (this.radius(number) * camera.pixels(pane)) / seen[2]);
      const apart = Math.hypot(seen[0] - x, seen[1] - y) / size;
      if (apart < least) [best, least] = [number, apart];
    }
    return best;
  }
}
