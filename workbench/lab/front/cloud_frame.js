// What is written over a cloud: the edges of the box with ticks and names, a bar of known length, and a ring around a halo.

import { roundStep, textOf, ticksBetween } from "./ticks.js";

const NAMES = ["x", "y", "z"];
const EDGE = "rgba(190, 200, 235, 0.38)";
const TICK = "rgba(205, 214, 245, 0.75)";
const WRITING = "#d6dcf5";
const FONT = "11px system-ui, sans-serif";

export class Frame {
  constructor(scene) {
    this.scene = scene;
    const longest = Math.max(...scene.lengths);
    this.sides = scene.lengths.map((length) => length / longest);
    this.longest = longest;
  }

  corner(which) {
    return which.map((end, i) => (end - 0.5) * this.sides[i]);
  }

  paint(context, camera, pane) {
    const edges = [0, 1, 2].map((axis) => this.edges(axis, camera, pane));
    context.lineWidth = 1;
    context.strokeStyle = EDGE;
    context.beginPath();
    for (const edge of edges.flat()) {
      if (!edge.ends) continue;
      context.moveTo(edge.ends[0][0], edge.ends[0][1]);
      context.lineTo(edge.ends[1][0], edge.ends[1][1]);
    }
    context.stroke();
    const centre = camera.seen([0, 0, 0], pane);
    if (centre) edges.forEach((four, axis) => this.paintAxis(context, camera, pane, four, axis, centre));
  }

  // The four edges along an axis, with their ends in the pane; without ends if a part is behind the camera.
  edges(axis, camera, pane) {
    const [one, two] = [0, 1, 2].filter((other) => other !== axis);
    return [[0, 0], [0, 1], [1, 0], [1, 1]].map(([a, b]) => {
      const start = [0, 0, 0];
      [start[one], start[two]] = [a, b];
      const end = [...start];
      end[axis] = 1;
      const ends = [start, end].map((which) => camera.seen(this.corner(which), pane));
      return { start, ends: ends.every(Boolean) ? ends : null };
    });
  }

  // Ticks and a name along the lowest of the edges; along the leftmost for what points up.
  paintAxis(context, camera, pane, edges, axis, centre) {
    const middle = ({ ends }) => [(ends[0][0] + ends[1][0]) / 2 - centre[0], (ends[0][1] + ends[1][1]) / 2 - centre[1]];
    const score = (edge) => (axis === 2 ? -middle(edge)[0] : middle(edge)[1]);
    const whole = edges.filter(({ ends }) => ends);
    if (!whole.length) return;
    const edge = whole.reduce((best, each) => (score(each) > score(best) ? each : best));
    const [from, to] = edge.ends;
    const long = Math.hypot(to[0] - from[0], to[1] - from[1]);
    if (long < 40) return;
    const mid = middle(edge);
    let out = [-(to[1] - from[1]) / long, (to[0] - from[0]) / long];
    if (out[0] * mid[0] + out[1] * mid[1] < 0) out = [-out[0], -out[1]];
    const { lower, lengths, unit } = this.scene;
    const ticks = ticksBetween(lower[axis], lower[axis] + lengths[axis], false, long > 220 ? 5 : long > 110 ? 3 : 2);
    context.strokeStyle = TICK;
    context.beginPath();
    for (const value of ticks) {
      const which = [...edge.start];
      which[axis] = (value - lower[axis]) / lengths[axis];
      const [x, y] = camera.seen(this.corner(which), pane);
      context.moveTo(x, y);
      context.lineTo(x + 5 * out[0], y + 5 * out[1]);
      this.write(context, textOf(value, ticks), x + 15 * out[0], y + 13 * out[1]);
    }
    context.stroke();
    const name = unit ? `${NAMES[axis]} [${unit}]` : NAMES[axis];
    const half = context.measureText(name).width / 2;
    const far = 30 + Math.abs(out[0]) * (axis === 2 ? 4 : half);
    const inside = (place, room, size) => Math.min(Math.max(place, room), size - room); // the pane is narrow in a panel
    const x = inside((from[0] + to[0]) / 2 + far * out[0], axis === 2 ? 8 : half + 4, pane.width);
    const y = inside((from[1] + to[1]) / 2 + far * out[1], axis === 2 ? half + 4 : 8, pane.height);
    this.write(context, name, x, y, axis === 2 ? -Math.PI / 2 : 0);
  }

  write(context, text, x, y, turned = 0) {
    context.save();
    context.font = FONT;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.translate(x, y);
    context.rotate(turned);
    context.lineWidth = 3;
    context.strokeStyle = "rgba(8, 8, 24, 0.85)";
    context.strokeText(text, 0, 0);
    context.fillStyle = WRITING;
    context.fillText(text, 0, 0);
    context.restore();
  }

  paintTitle(context, title) {
    context.font = FONT;
    this.write(context, title, 10 + context.measureText(title).width / 2, 14);
  }

  // A bar of a round length, true in the depth of the centre of rotation.
  paintBar(context, camera, pane) {
    const pixels = camera.pixels(pane) / camera.distance / this.longest; // of a unit of length
    const length = roundStep((0.1 * pane.width) / pixels); // so that the bar has 0.1 to 0.25 of the width
    const [left, y] = [14, pane.height - 14];
    context.fillStyle = WRITING;
    context.fillRect(left, y, length * pixels, 2);
    const text = `${textOf(length, [length])} ${this.scene.unit}`.trim();
    context.font = FONT;
    const half = Math.max(length * pixels, context.measureText(text).width) / 2; // neither is cut off
    this.write(context, text, left + half, y - 10);
  }

  paintRing(context, camera, pane, place, radius) {
    const seen = camera.seen(place, pane);
    if (!seen) return;
    const size = Math.max(7, (radius * camera.pixels(pane)) / seen[2]);
    for (const [width, colour] of [[4, "rgba(8, 8, 24, 0.8)"], [1.6, "#ffffff"]]) {
      context.lineWidth = width;
      context.strokeStyle = colour;
      context.beginPath();
      context.arc(seen[0], seen[1], size, 0, 2 * Math.PI);
      context.stroke();
    }
  }
}
