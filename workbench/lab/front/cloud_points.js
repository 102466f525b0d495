// The points of a cloud on the graphics processor. Each adds its light and hue to a picture of sums, in any order and in
// as many steps as there is time for; a second pass shows the mean hue of each pixel, as bright as the logarithm of its light.

const POINT = 8; // bytes: three coordinates and a tag
export const MOST_CHANGED = 20000; // marks of particles that left or joined a halo, on each side
export const HALO_BITS = 0x3fff;
export const hex = (text) => [0, 2, 4].map((at) => parseInt(text.slice(at, at + 2), 16));
const UNIFORMS = [
  "camera", "size", "palette", "haze", "left", "joined", "sums", "densities", "scale", "asDensity", "background",
  "leftHue", "joinedHue", "rim",
];
export const ROUND = 2.5; // pixels from which on a point is a disc

const PLACED = `#version 300 es
layout(location = 0) in vec3 place;
layout(location = 1) in uint tag;
uniform mat4 camera;
uniform float size;`;

const LIT = `${PLACED}
uniform highp sampler2D palette;
uniform vec2 haze;
uniform vec4 left;
uniform vec4 joined;
flat out vec4 light;
void main() {
  gl_Position = camera * vec4(place, 1.0);
  gl_PointSize = size;
  int halo = int(tag & 0x3fffu);
  light = texelFetch(palette, ivec2(halo & 127, halo >> 7), 0);
  if (tag > 0x3fffu && left.a > 0.0) light = tag >> 14 == 1u ? left : joined;
  light.a *= exp(haze.x * (haze.y - gl_Position.w));
  light.rgb *= light.a;
}`;

const ADDED = `#version 300 es
precision mediump float;
flat in vec4 light;
out vec4 sum;
void main() { sum = light; }`;

const ADDED_DISC = `#version 300 es
precision mediump float;
flat in vec4 light;
out vec4 sum;
void main() {
  vec2 from = 2.0 * gl_PointCoord - 1.0;
  sum = light * max(0.0, 1.0 - dot(from, from));
}`;

const WHOLE = `#version 300 es
void main() { gl_Position = vec4(vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 1.0, 0.0, 1.0); }`;

const SHOWN = `#version 300 es
precision highp float;
uniform highp sampler2D sums;
uniform mediump sampler2D densities;
uniform vec2 scale;
uniform bool asDensity;
uniform vec3 background;
out vec4 colour;
void main() {
  vec4 sum = texelFetch(sums, ivec2(gl_FragCoord.xy), 0);
  float bright = min(log(1.0 + sum.a * scale.x) * scale.y, 1.0);
  vec3 shown = asDensity
    ? texture(densities, vec2(bright * 0.996 + 0.002, 0.5)).rgb
    : mix(background, sum.rgb / max(sum.a, 1e-6), bright);
  colour = vec4(shown, 1.0);
}`;

const MARKED = `${PLACED}
flat out uint change;
void main() {
  gl_Position = camera * vec4(place, 1.0);
  gl_PointSize = size;
  change = tag >> 14;
}`;

// What left its halo is a cross, what joined one a ring; both on a dark rim.
const SIGN = `#version 300 es
precision mediump float;
flat in uint change;
uniform vec3 leftHue;
uniform vec3 joinedHue;
uniform vec3 rim;
out vec4 colour;
void main() {
  vec2 from = 2.0 * gl_PointCoord - 1.0;
  float reach = length(from);
  float apart = min(abs(from.x - from.y), abs(from.x + from.y)) * 0.7;
  bool left = change == 1u;
  float away = left ? max(apart - 0.16, reach - 0.85) : abs(reach - 0.62) - 0.17;
  if (away > 0.2 || reach > 1.0) discard;
  colour = vec4(away > 0.0 ? rim : left ? leftHue : joinedHue, 1.0);
}`;

export class Unsupported extends Error {}

export class Points {
  constructor(canvas, shading, densities) {
    const gl = canvas.getContext("webgl2", { alpha: false, antialias: false, depth: false, preserveDrawingBuffer: true });
    if (!gl) throw new Unsupported("this browser has no WebGL 2");
    if (!gl.getExtension("EXT_color_buffer_float") && !gl.getExtension("EXT_color_buffer_half_float")) {
      throw new Unsupported("this browser's WebGL cannot add up light");
    }
    this.gl = gl;
    this.shading = shading;
    this.sides = [];
    this.programs = {
      points: this.program(LIT, ADDED), discs: this.program(LIT, ADDED_DISC),
      shown: this.program(WHOLE, SHOWN), signs: this.program(MARKED, SIGN),
    };
    this.palette = this.texture(0);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, 128, 128);
    this.densities = this.texture(1);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB, 256, 1, 0, gl.RGB, gl.UNSIGNED_BYTE, densities);
    this.target = gl.createFramebuffer();
    this.half = gl.createFramebuffer(); // what is shown of sums in half the resolution
    this.nothing = gl.createVertexArray();
  }

  program(vertex, fragment) {
    const { gl } = this;
    const made = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(made, shader);
      gl.deleteShader(shader); // when the program is
    }
    gl.linkProgram(made);
    if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost()) {
      throw new Error(`the shaders of the cloud do not link: ${gl.getProgramInfoLog(made)}`);
    }
    const places = {};
    for (const name of UNIFORMS) places[name] = gl.getUniformLocation(made, name);
    return { made, places };
  }

  texture(unit) {
    const { gl } = this;
    const made = gl.createTexture();
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, made);
    for (const which of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, which, gl.NEAREST);
    for (const which of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, which, gl.CLAMP_TO_EDGE);
    return made;
  }

  // Room for so many points on each of the sides.
  allocate(sides, count) {
    for (const side of this.sides) this.forget(side);
    this.sides = Array.from({ length: sides }, () => ({ all: this.buffer(count), changed: this.buffer(MOST_CHANGED), marks: 0 }));
  }

  buffer(count) {
    const { gl } = this;
    const [buffer, array] = [gl.createBuffer(), gl.createVertexArray()];
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, POINT * count, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 3, gl.UNSIGNED_SHORT, true, POINT, 0);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribIPointer(1, 1, gl.UNSIGNED_SHORT, POINT, 6);
    return { buffer, array };
  }

  add(number, from, points) {
    const { gl } = this;
    const side = this.sides[number];
    gl.bindBuffer(gl.ARRAY_BUFFER, side.all.buffer);
    gl.bufferSubData(gl.ARRAY_BUFFER, POINT * from, points);
    const changed = [];
    for (let i = 0; i < points.length && side.marks + changed.length / 4 < MOST_CHANGED; i += 4) {
      if (points[i + 3] > HALO_BITS) changed.push(points[i], points[i + 1], points[i + 2], points[i + 3]);
    }
    if (!changed.length) return;
    gl.bindBuffer(gl.ARRAY_BUFFER, side.changed.buffer);
    gl.bufferSubData(gl.ARRAY_BUFFER, POINT * side.marks, new Uint16Array(changed));
    side.marks += changed.length / 4;
  }

  hue(which) {
    return hex(this.shading[which]).map((channel) => channel / 255);
  }

  // The colour and light of each halo, as 128 x 128 x 4 bytes.
  colour(bytes) {
    const { gl } = this;
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.palette);
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, 128, 128, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
  }

  resize(width, height) {
    const { gl } = this;
    if (this.sums) gl.deleteTexture(this.sums);
    this.sums = this.texture(2);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA16F, width, height);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, this.sums, 0);
    if (this.halves) gl.deleteTexture(this.halves);
    this.halves = this.texture(3);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, Math.ceil(width / 2), Math.ceil(height / 2));
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.half);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, this.halves, 0);
  }

  clear() {
    const { gl } = this;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
  }

  // Add the points from `from` up to `to` of one side, in its part of the canvas.
  draw(number, view, matrix, from, to, { size, haze, changes }) {
    const { gl } = this;
    const { made, places } = this.programs[size < ROUND ? "points" : "discs"];
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target);
    this.within(view);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE);
    gl.useProgram(made);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.palette);
    gl.uniform1i(places.palette, 0);
    gl.uniformMatrix4fv(places.camera, false, matrix);
    gl.uniform1f(places.size, size);
    gl.uniform2f(places.haze, ...haze);
    for (const which of ["left", "joined"]) gl.uniform4f(places[which], ...this.hue(which), changes ? this.shading.changed : 0);
    gl.bindVertexArray(this.sides[number].all.array);
    gl.drawArrays(gl.POINTS, from, to - from);
    gl.disable(gl.BLEND);
    gl.disable(gl.SCISSOR_TEST);
  }

  // A point may reach beyond its part of the canvas, so the part is cut out.
  within({ left, bottom, width, height }) {
    const { gl } = this;
    gl.viewport(left, bottom, width, height);
    gl.scissor(left, bottom, width, height);
    gl.enable(gl.SCISSOR_TEST);
  }

  // Show the sums: `gain` is what the mean light counts, `span` the largest light that is told apart from it. If `coarse`, the
  // points were drawn in half the resolution.
  show(gain, span, asDensity, coarse) {
    const { gl } = this;
    const { made, places } = this.programs.shown;
    const [width, height] = [gl.drawingBufferWidth, gl.drawingBufferHeight];
    const [across, down] = coarse ? [width >> 1, height >> 1] : [width, height];
    gl.bindFramebuffer(gl.FRAMEBUFFER, coarse ? this.half : null);
    gl.viewport(0, 0, across, down);
    gl.useProgram(made);
    for (const [unit, texture] of [[1, this.densities], [2, this.sums]]) {
      gl.activeTexture(gl.TEXTURE0 + unit);
      gl.bindTexture(gl.TEXTURE_2D, texture);
    }
    gl.uniform1i(places.densities, 1);
    gl.uniform1i(places.sums, 2);
    gl.uniform2f(places.scale, gain, 1 / Math.log1p(span));
    gl.uniform1i(places.asDensity, asDensity);
    gl.uniform3f(places.background, ...this.hue("background"));
    gl.bindVertexArray(this.nothing);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    if (!coarse) return;
    gl.bindFramebuffer(gl.READ_FRAMEBUFFER, this.half);
    gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, null);
    gl.blitFramebuffer(0, 0, across, down, 0, 0, width, height, gl.COLOR_BUFFER_BIT, gl.LINEAR);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  // Mark up to `most` of the particles that changed, over what is shown.
  mark(number, view, matrix, most, size) {
    const { gl } = this;
    const { made, places } = this.programs.signs;
    const side = this.sides[number];
    const count = Math.min(side.marks, most);
    if (!count) return;
    this.within(view);
    gl.useProgram(made);
    gl.uniformMatrix4fv(places.camera, false, matrix);
    gl.uniform1f(places.size, size);
    for (const [name, which] of [["leftHue", "left"], ["joinedHue", "joined"], ["rim", "background"]]) {
      gl.uniform3f(places[name], ...this.hue(which));
    }
    gl.bindVertexArray(side.changed.array);
    gl.drawArrays(gl.POINTS, 0, count);
    gl.disable(gl.SCISSOR_TEST);
  }

  forget(side) {
    for (const { buffer, array } of [side.all, side.changed]) {
      this.gl.deleteBuffer(buffer);
      this.gl.deleteVertexArray(array);
    }
  }

  free() {
    const { gl } = this;
    for (const side of this.sides) this.forget(side);
    this.sides = [];
    for (const { made } of Object.values(this.programs)) gl.deleteProgram(made);
    for (const texture of [this.palette, this.densities, this.sums, this.halves]) gl.deleteTexture(texture);
    gl.deleteFramebuffer(this.target);
    gl.deleteFramebuffer(this.half);
    gl.deleteVertexArray(this.nothing);
    gl.getExtension("WEBGL_lose_context")?.loseContext(); // a page may have few contexts, and waits long to take them back
  }
}
