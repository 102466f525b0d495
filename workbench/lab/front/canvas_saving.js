// One picture as a file, with title, axes, colour bar and legend: the same parts painted on a canvas or written as SVG.

import { BELOW, LEFT, axisShapes, drawAxes } from "./canvas_axes.js";
import { paintSample } from "./canvas_marks.js";
import { NO_VALUE } from "./canvas_values.js";
import { drawn as svg, element, saveAs } from "./dom.js";

const ROOM = 12;
const HEAD = 26;
const LINE = 20;
const FONT = "system-ui, sans-serif";

function layout(view, pane) {
  const { clientWidth: width, clientHeight: height } = pane.canvas;
  const marks = new Map();
  for (const mark of view.visible(pane)) if (mark.label && mark.places.length) marks.set(mark.label, mark);
  if (pane.hasGaps()) marks.set("", { label: "no value", filled: NO_VALUE });
  const perLine = Math.max(1, Math.floor(width / 130));
  const rows = Math.ceil(marks.size / perLine);
  const bar = { x: LEFT + ROOM, y: HEAD + height + BELOW + ROOM, width, height: 9 };
  const legend = [...marks.values()].map((mark, number) => ({
    mark, x: LEFT + ROOM + 130 * (number % perLine), y: bar.y + 40 + LINE * Math.floor(number / perLine),
  }));
  const total = [LEFT + width + 2 * ROOM, bar.y + 34 + LINE * rows + ROOM];
  return { width, height, bar, legend, total };
}

function texts(pane, { width, bar, legend }) {
  const { sent } = pane;
  const [low, high] = pane.ends();
  const all = [
    { text: sent.title, x: LEFT + ROOM, y: 18, size: 14, weight: 600, anchor: "start" },
    { text: sent.axes.depth, x: LEFT + ROOM + width, y: 18, size: 11, anchor: "end" },
    { text: low, x: bar.x, y: bar.y + 22, size: 11, anchor: "start" },
    { text: pane.caption(), x: bar.x + width / 2, y: bar.y + 22, size: 11, anchor: "middle" },
    { text: high, x: bar.x + width, y: bar.y + 22, size: 11, anchor: "end" },
  ];
  for (const { mark, x, y } of legend) all.push({ text: mark.label, x: x + 36, y: y + 10, size: 11, anchor: "start" });
  return all.filter(({ text }) => text);
}

function picture(view, pane, scale) {
  const [width, height] = [pane.canvas.clientWidth, pane.canvas.clientHeight].map((side) => Math.round(side * scale));
  const image = element("canvas", "", null, { width, height });
  view.paintPicture(image.getContext("2d"), pane, pane, image.width / pane.canvas.clientWidth);
  return image;
}

function sample(mark, scale) {
  const image = element("canvas", "", null, { width: 30 * scale, height: 14 * scale });
  const context = image.getContext("2d");
  context.scale(scale, scale);
  context.fillStyle = mark.filled ?? "#1c1830";
  context.fillRect(0, 0, 30, 14);
  if (!mark.filled) paintSample(context, mark, 30, 14);
  return image;
}

function images(view, pane, placed, scale) {
  const { width, height, bar, legend } = placed;
  return [
    { image: picture(view, pane, scale), x: LEFT + ROOM, y: HEAD, width, height },
    { image: pane.bar, x: bar.x, y: bar.y, width: bar.width, height: bar.height },
    ...legend.map(({ mark, x, y }) => ({ image: sample(mark, scale), x, y, width: 30, height: 14 })),
  ];
}

// As SVG: everything that is text or line stays so; the picture with its marks is embedded.
export function svgOf(view, pane, scale) {
  const placed = layout(view, pane);
  const [width, height] = placed.total;
  const [ink, paper] = view.inkAndPaper();
  const root = svg("svg", null, {
    width, height, viewBox: `0 0 ${width} ${height}`, color: ink, "font-family": FONT, role: "img",
  });
  svg("title", root, {}, pane.description());
  svg("rect", root, { width, height, fill: paper });
  for (const { image, ...where } of images(view, pane, placed, scale))
    svg("image", root, { ...where, href: image.toDataURL(), preserveAspectRatio: "none" });
  for (const { text, x, y, size, weight = 400, anchor } of texts(pane, placed))
    svg("text", root, { x, y, fill: ink, "font-size": size, "font-weight": weight, "text-anchor": anchor }, text);
  const axes = svg("g", root, { transform: `translate(${ROOM} ${HEAD})`, "font-size": 11 });
  drawAxes(axes, axisShapes(view.placing(pane), placed.width, placed.height, pane.sent.axes, view.home()));
  return new XMLSerializer().serializeToString(root);
}

// As PNG: the browser draws the same SVG.
async function pngOf(view, pane, scale) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgOf(view, pane, scale))}`;
  await image.decode();
  const canvas = element("canvas", "", null, { width: Math.round(image.width * scale), height: Math.round(image.height * scale) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

export async function savedAs(view, pane, format, times) {
  const scale = times * (format === "png" ? window.devicePixelRatio || 1 : 1);
  const content = format === "png"
    ? await pngOf(view, pane, scale)
    : new Blob([svgOf(view, pane, scale)], { type: "image/svg+xml" });
  saveAs(`${pane.sent.title.replace(/[^\w.-]+/g, "-").replace(/^-|-$/g, "") || "picture"}.${format}`, content);
}
