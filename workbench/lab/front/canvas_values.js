// Levels of pixels as values and colours. Levels are 8 or 16 bits, so limits can change here without asking Python again:
// fields have 65,535 steps, of which a hundredth of the range still has 655; densities are logarithmic, with steps of a few
// percent; errors have 127 steps to each side, which no narrower limits are meant for.

const NOTHING = [118, 118, 118];
export const NO_VALUE = `rgb(${NOTHING.join(", ")})`;
const SHARES = { "1-99": 0.01, "0.1-99.9": 0.001 };

export const topLevel = (sent) => (sent.deep ? 65535 : 255);
const leastLevel = (sent) => (sent.empty ? 1 : 0);

export function levelsOf(sent) {
  const { buffer, byteOffset, byteLength } = sent.pixels;
  if (!sent.deep) return new Uint8Array(buffer, byteOffset, byteLength);
  if (byteOffset % 2 === 0) return new Uint16Array(buffer, byteOffset, byteLength / 2);
  return new Uint16Array(buffer.slice(byteOffset, byteOffset + byteLength)); // 16 bits must be aligned
}

export function valueAt(sent, level) {
  if (sent.empty && level === 0) return NaN;
  const least = leastLevel(sent);
  const share = (level - least) / (topLevel(sent) - least);
  if (!sent.logarithmic) return sent.low + share * (sent.high - sent.low);
  return sent.low * Math.pow(sent.high / sent.low, share);
}

function levelOf(sent, value) {
  const least = leastLevel(sent);
  const scaled = sent.logarithmic ? Math.log : (number) => number;
  const share = (scaled(value) - scaled(sent.low)) / (scaled(sent.high) - scaled(sent.low));
  return least + share * (topLevel(sent) - least);
}

export function shown(value, digits = 4) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const long = size !== 0 && (size < 1e-3 || size >= 1e5);
  const text = long ? value.toExponential(digits - 2).replace("e+", "e") : String(Number(value.toPrecision(digits)));
  return text.replaceAll("-", "−");
}

// Pictures on one scale, such as original and decoded, which limits that are locked keep comparable.
export function sameScale(one, other) {
  return ["colours", "low", "high", "logarithmic", "unit"].every((name) => one[name] === other[name]);
}

function percentiles(pane, share) {
  const { sent, levels } = pane;
  const often = new Uint32Array(topLevel(sent) + 1);
  const symmetric = sent.colours === "difference";
  const middle = (topLevel(sent) + 1) / 2;
  for (let i = 0; i < levels.length; i++) often[symmetric ? Math.abs(levels[i] - middle) : levels[i]] += 1;
  if (symmetric) {
    const outside = [share, often.reduce((sum, count) => sum + count, 0)];
    let level = middle - 1;
    for (let beyond = often[level]; level > 1 && beyond <= outside[0] * outside[1]; beyond += often[level]) level -= 1;
    const value = valueAt(sent, middle + level);
    return [-value, value];
  }
  often[0] = 0; // no value, or no particle
  const total = often.reduce((sum, count) => sum + count, 0);
  let [low, high] = [1, often.length - 1];
  for (let below = often[low]; low < high && below <= share * total; below += often[low]) low += 1;
  for (let above = often[high]; high > low && above <= share * total; above += often[high]) high -= 1;
  return [valueAt(sent, low), valueAt(sent, Math.max(high, low + 1))];
}

// The ends of the colours of a pane: its scale, percentiles of what it shows, or typed numbers.
export function limitsOf(pane, first, settings) {
  const { sent } = pane;
  const whole = [sent.low, sent.high];
  const limits = settings.limits || sent.limits;
  if (limits === "full" || sent.palette.length) return whole;
  if (limits === "typed") {
    const [low, high] = settings.typed;
    const usable = low < high && (!sent.logarithmic || low > 0);
    return usable && sameScale(sent, first.sent) ? [low, high] : whole;
  }
  const source = settings.locked && sameScale(sent, first.sent) ? first : pane;
  return percentiles(source, SHARES[limits]);
}

export function mapOf(sent, settings) {
  return settings.colours && sent.colours !== "difference" ? settings.colours : sent.colours;
}

const packed = (r, g, b) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

// 256 colours from the lower to the upper end of a scale.
export function scaleColours(sent, tables, settings) {
  const colours = new Uint32Array(256);
  const parsed = sent.palette.map((text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)));
  const table = tables[mapOf(sent, settings)];
  const bytes = new Uint8Array(table.buffer, table.byteOffset, 768);
  for (let i = 0; i < 256; i++) {
    const number = Math.round((i / 255) * (parsed.length - 1));
    colours[i] = packed(...(parsed.length ? parsed[number] : bytes.subarray(3 * i, 3 * i + 3)));
  }
  return colours;
}

export function imageOf(pane, tables, settings) {
  const { sent, levels, limits } = pane;
  const scale = scaleColours(sent, tables, settings);
  const [from, to] = limits.map((value) => levelOf(sent, value));
  const colours = new Uint32Array(topLevel(sent) + 1).fill(scale[0]);
  // The first of the levels that are nearest to a colour.
  const first = (number) => Math.max(0, Math.ceil(from + ((number - 0.5) * (to - from)) / 255));
  for (let number = 1; number < 256 && to > from; number++)
    colours.fill(scale[number], first(number), number < 255 ? first(number + 1) : colours.length);
  if (sent.empty) colours[0] = packed(...NOTHING);
  const pixels = new Uint32Array(levels.length);
  for (let i = 0; i < pixels.length; i++) pixels[i] = colours[levels[i]];
  const image = document.createElement("canvas");
  image.width = sent.width;
  image.height = sent.height;
  const data = new ImageData(new Uint8ClampedArray(pixels.buffer), sent.width, sent.height);
  image.getContext("2d").putImageData(data, 0, 0);
  return image;
}
