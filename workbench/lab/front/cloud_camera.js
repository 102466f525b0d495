// Where a cloud is seen from. The unit of lengths is the longest axis of the frame, whose centre is the origin.

const NEAREST = 0.004; // of the distances to the target
const NEAR = 0.02; // what is nearer to the camera than this share of its distance is not drawn
const STEEP = Math.PI / 2;

const cosSin = (angle) => [Math.cos(angle), Math.sin(angle)];
const inner = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const within = (value, low, high) => Math.min(high, Math.max(low, value));

export class Camera {
  constructor(shading, lengths) {
    this.shading = shading;
    const longest = Math.max(...lengths);
    this.sides = lengths.map((length) => length / longest);
    this.reset();
  }

  reset() {
    Object.assign(this, { yaw: this.shading.yaw, pitch: this.shading.pitch, distance: this.shading.distance, target: [0, 0, 0] });
  }

  get state() {
    return [this.yaw, this.pitch, this.distance, ...this.target];
  }

  set state([yaw, pitch, distance, ...target]) {
    Object.assign(this, { yaw, pitch, distance, target });
  }

  rotate(across, up) {
    this.yaw = (this.yaw - across) % (2 * Math.PI);
    this.pitch = within(this.pitch + up, -STEEP, STEEP);
  }

  zoom(factor) {
    this.distance = within(this.distance * factor, NEAREST * this.shading.distance, 4 * this.shading.distance);
  }

  // By so many pixels of a pane, in the plane of the target.
  move(across, up, pane) {
    const [right, , upward] = this.axes();
    const step = this.distance / this.pixels(pane);
    this.target = this.target.map((at, i) => within(at - step * (across * right[i] - up * upward[i]), -1, 1));
  }

  // To the right, away from the camera, and up.
  axes() {
    const [c, s] = cosSin(this.yaw);
    const [cp, sp] = cosSin(this.pitch);
    return [[c, s, 0], [-s * cp, c * cp, -sp], [-s * sp, c * sp, cp]];
  }

  // How many pixels of a pane a length seen from as far away as it is long has.
  pixels({ width, height }) {
    return (this.shading.lens * Math.min(width, height)) / 2;
  }

  // From a place in the frame (0 to 1 along each axis) to the coordinates of WebGL, column by column.
  matrix(pane) {
    const [right, away, up] = this.axes();
    const least = Math.min(pane.width, pane.height);
    const wide = (this.shading.lens * least) / pane.width;
    const high = (this.shading.lens * least) / pane.height;
    const near = NEAR * this.distance;
    const start = this.sides.map((side, i) => -side / 2 - this.target[i]);
    const depth = this.distance + inner(away, start);
    const columns = this.sides.map((side, i) => [
      side * wide * right[i], side * high * up[i], side * away[i], side * away[i],
    ]);
    return [...columns, [wide * inner(right, start), high * inner(up, start), depth - 2 * near, depth]].flat();
  }

  // Where a place (with the origin in the centre) is in a pane: pixels from its corner, and the depth; null behind the camera.
  seen(place, pane) {
    const [right, away, up] = this.axes();
    const from = place.map((at, i) => at - this.target[i]);
    const depth = this.distance + inner(away, from);
    if (depth < NEAR * this.distance) return null;
    const scale = this.pixels(pane) / depth;
    return [pane.width / 2 + scale * inner(right, from), pane.height / 2 - scale * inner(up, from), depth];
  }
}
