// Pointer and keys on a picture.

import { hit, inOrder } from "./canvas_marks.js";

const STILL = 4; // pixels that a click may move
const CLOSER = 0.7; // the factor of one step of zooming

export const KEYS = [
  ["arrows", "move"],
  ["+ and −", "zoom in and out; so does the wheel over a picture in use, or with Ctrl"],
  ["0", "show everything"],
  ["b", "alternate the first two pictures in one place"],
  ["Page Down, Page Up", "go through the marks, from the largest to the smallest"],
  ["Enter", "choose the mark"],
  ["Escape", "leave the marks, or this help"],
  ["?", "this help"],
];

export function listenToPointer(view, pane) {
  const { canvas } = pane;
  let from = null;
  let moved = false;
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) {
      view.hint("the wheel zooms with Ctrl, or after a click on the picture"); // otherwise the page scrolls
      return;
    }
    event.preventDefault();
    const [x, y] = view.placing(pane).from(event.offsetX, event.offsetY);
    view.zoom(Math.pow(1.0015, event.deltaY), x, y);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    from = [event.offsetX, event.offsetY];
    moved = false;
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    view.readings.at(pane, event.offsetX, event.offsetY);
    if (!from) return;
    const dx = event.offsetX - from[0];
    const dy = event.offsetY - from[1];
    if (!moved && Math.hypot(dx, dy) < STILL) return;
    moved = true;
    const { scale, rise } = view.placing(pane);
    view.move(-dx / scale, dy / rise);
    from = [event.offsetX, event.offsetY];
  });
  canvas.addEventListener("pointerup", (event) => {
    if (from && !moved) pickAt(view, pane, event.offsetX, event.offsetY);
    from = null;
  });
  canvas.addEventListener("pointercancel", () => (from = null));
  canvas.addEventListener("pointerleave", () => view.readings.leave());
  canvas.addEventListener("dblclick", () => view.reset());
  canvas.addEventListener("blur", () => view.choose(null));
}

function pickAt(view, pane, px, py) {
  const placing = view.placing(pane);
  view.tellPicked(hit(view.visible(pane), placing, px, py));
}

export function zoomByStep(view, nearer) {
  const [left, right, bottom, top] = view.view;
  view.zoom(nearer ? CLOSER : 1 / CLOSER, (left + right) / 2, (bottom + top) / 2);
}

function step(view, pane, forward) {
  const { clientWidth: width, clientHeight: height } = pane.canvas;
  const marks = inOrder(view.visible(pane), view.placing(pane), width, height);
  if (!marks.length) return view.say("no marks in sight");
  const { chosen } = view;
  const same = ({ id, label }) => chosen && chosen.pane === pane && id === chosen.id && label === chosen.label;
  const before = marks.findIndex(same);
  const start = forward ? -1 : 0;
  const at = ((before < 0 ? start : before) + (forward ? 1 : -1) + marks.length) % marks.length;
  view.choose({ ...marks[at], pane });
  return view.say(`${marks[at].title}; ${at + 1} of ${marks.length}`);
}

export function listenToKeys(view, pane) {
  pane.canvas.addEventListener("keydown", (event) => {
    const [left, right] = view.view;
    const stride = (right - left) / 8;
    const actions = {
      ArrowLeft: () => view.move(-stride, 0),
      ArrowRight: () => view.move(stride, 0),
      ArrowUp: () => view.move(0, stride),
      ArrowDown: () => view.move(0, -stride),
      "+": () => zoomByStep(view, true),
      "=": () => zoomByStep(view, true),
      "-": () => zoomByStep(view, false),
      0: () => view.reset(),
      b: () => view.set({ blink: !view.settings.blink }),
      "?": () => view.toolbar.help.toggle(true),
      PageDown: () => step(view, pane, true),
      PageUp: () => step(view, pane, false),
      ...(view.chosen ? {
        Enter: () => view.tellPicked(view.chosen),
        Escape: () => view.choose(null),
      } : {}),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  });
}
