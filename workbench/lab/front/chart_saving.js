// A chart as a file, complete with its name and key, on white whatever the theme of the page.

import { SVG, saveAs } from "./dom.js";

export const [GLYPH_WIDTH, GLYPH_HEIGHT] = [26, 14]; // of a key, as in charts/svg.py
const [MARGIN, LINE, LETTERS] = [10, 20, 12]; // pixels
const FONT = "system-ui, sans-serif";
const ON_WHITE = "#333333";
const SHARPER = 2; // pixels of a PNG for each pixel of the page
const INKS = ["axis-label-text-color", "major-label-text-color"]; // as in charts.css

async function plotOnWhite({ plot, view }) {
  for (const ink of INKS) plot.style.setProperty(`--bk-${ink}`, ON_WHITE);
  try {
    const blob = await view.export("svg").to_blob();
    return await blob.text();
  } finally {
    for (const ink of INKS) plot.style.removeProperty(`--bk-${ink}`);
  }
}

const escaped = (text) => new Option(text).innerHTML;

// The entries of a key in rows of this width, and the height of all.
function rows(key, width) {
  const pen = new OffscreenCanvas(1, 1).getContext("2d");
  pen.font = `${LETTERS}px ${FONT}`;
  let [x, y] = [MARGIN, 0];
  const placed = key.map(({ name, glyph }) => {
    const needed = GLYPH_WIDTH + 18 + pen.measureText(name).width;
    if (x > MARGIN && x + needed > width) [x, y] = [MARGIN, y + LINE];
    const text = `<text x="${GLYPH_WIDTH + 4}" y="11">${escaped(name)}</text>`;
    const entry = `<g transform="translate(${x} ${y})">${glyph}${text}</g>`;
    x += needed;
    return entry;
  });
  return [placed.join(""), key.length ? y + LINE : 0];
}

async function complete(frame) {
  const { width, height } = frame.view.bbox;
  const { name, key } = frame.words;
  const [entries, needed] = rows(key, width);
  const top = MARGIN + (name ? LINE : 0);
  const whole = top + needed + height + MARGIN;
  const plot = (await plotOnWhite(frame)).replace("<svg ", `<svg x="0" y="${top + needed}" `);
  const head = `xmlns="${SVG}" width="${width}" height="${whole}" viewBox="0 0 ${width} ${whole}"`;
  const heading = `<text x="${MARGIN}" y="${MARGIN + 11}" font-weight="600">${escaped(name)}</text>`;
  const words = `<g font-family="${FONT}" font-size="${LETTERS}" fill="${ON_WHITE}">${heading}` +
    `<g transform="translate(0 ${top})">${entries}</g></g>`;
  return { width, height: whole, svg: `<svg ${head}><rect width="100%" height="100%" fill="#ffffff"/>${words}${plot}</svg>` };
}

async function painted({ width, height, svg }) {
  const image = new Image();
  const loaded = new Promise((resolve, reject) => Object.assign(image, { onload: resolve, onerror: reject }));
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await loaded;
  const canvas = new OffscreenCanvas(SHARPER * width, SHARPER * height);
  const pen = canvas.getContext("2d");
  pen.scale(SHARPER, SHARPER);
  pen.drawImage(image, 0, 0, width, height);
  return canvas.convertToBlob({ type: "image/png" });
}

export async function save(frame, kind) {
  const drawn = await complete(frame);
  const blob = kind === "svg" ? new Blob([drawn.svg], { type: "image/svg+xml" }) : await painted(drawn);
  saveAs(`${frame.words.name.replace(/[^\w-]+/g, "-") || "chart"}.${kind}`, blob);
}
