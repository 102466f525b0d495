// The heights of a panel's parts: controls, answer, pictures and the first charts are to be on the screen together.

const [LEAST, ALONE, MOST, STEP] = [150, 240, 1200, 8]; // pixels of pictures: several side by side, one, at most
const JITTER = 40; // pictures shrink when there is less room, but grow only by more than this
const MARGIN = 14;
const GAP = 10;
const [LOW, CHART, HIGH] = [150, 185, 280]; // pixels of charts: at least, what is left for them, at most
const SIDE = 300; // pixels of width for what stands beside the pictures
const SCREENS = ".jp-WindowedPanel-outer, .jp-LinkedOutputView, #rendered_cells"; // a notebook, a view of one output, a page of Voilà

export class Fitting {
  constructor(view) {
    this.view = view;
    this.fit = this.fit.bind(this);
    this.observer = new ResizeObserver(() => this.later());
    for (const part of [view.root, view.above, view.answer, view.strip, view.middle]) this.observer.observe(part);
    addEventListener("resize", this.fit);
  }

  close() {
    removeEventListener("resize", this.fit);
    this.observer.disconnect();
    cancelAnimationFrame(this.wanted);
  }

  later() {
    if (this.wanted) return;
    this.wanted = requestAnimationFrame(() => {
      this.wanted = 0;
      this.fit();
    });
  }

  fit() {
    const { root, middle, pictures, side, strip, below } = this.view;
    if (!root.clientWidth) return; // not on the page now
    const screen = root.closest(SCREENS);
    if (screen && this.screen !== screen) this.observer.observe((this.screen = screen));
    const available = screen?.clientHeight ?? innerHeight;
    const from = (part) => part.getBoundingClientRect().top - root.getBoundingClientRect().top;
    const canvases = this.view.canvases();
    const charts = (place) => this.view.chartsIn(place).filter((chart) => chart.frame.el.clientWidth);
    const [among, besides, belows] = [charts(pictures), charts(side), charts(below)];
    const around = Math.max(0, ...canvases.map((canvas) => canvas.around()));
    const under = belows.length || this.view.reserved?.includes("below") ? CHART + GAP : 0;
    const room = available - from(middle) - strip.offsetHeight - under - MARGIN;
    const least = canvases.some((canvas) => canvas.seen?.length > 1) ? LEAST : ALONE;
    const tall = STEP * Math.floor(Math.min(MOST, Math.max(least, room - around)) / STEP);
    const grows = tall - (this.tall ?? -Infinity);
    if (available !== this.available || grows < 0 || grows >= JITTER) [this.available, this.tall] = [available, tall];
    const most = Math.min(...canvases.map((canvas) => canvas.most)); // so that all are equally high
    for (const canvas of canvases) canvas.fit(Math.min(this.tall, most));
    for (const chart of among) chart.fit(Math.min(HIGH, Math.max(LOW, room)));
    this.share(canvases, among, pictures, side, middle.clientWidth);
    const beside = side.offsetTop >= pictures.offsetTop + pictures.offsetHeight ? HIGH : this.beside(besides, pictures, side);
    for (const chart of besides) chart.fit(beside);
    const left = available - from(below) - MARGIN;
    for (const chart of belows) chart.fit(Math.min(HIGH, Math.max(LOW, left)));
  }

  // Pictures are as wide as their height asks for; what stands beside them has the rest, or its own row if that is too little.
  share(canvases, among, pictures, side, width) {
    const narrow = !side.hidden && width < 2 * SIDE;
    for (const canvas of canvases) canvas.single?.(narrow && canvases.length === 1);
    const wanted = canvases.map((canvas) => canvas.widthOf(canvas.highest));
    const wide = wanted.reduce((sum, each) => sum + each, 0) + GAP * (canvases.length - 1);
    const most = side.hidden || (narrow && !canvases[0]?.lone) ? width : width - SIDE - GAP;
    pictures.style.flex = among.length ? `${among.length} 1 ${SIDE}px` : `0 0 ${Math.min(wide, most)}px`;
    canvases.forEach((canvas, i) => (canvas.root.parentElement.style.flex = `${wanted[i]} 1 0`));
  }

  // The height of each chart beside the pictures: together, with what stands above them, they are as high as these.
  beside(charts, pictures, side) {
    const others = [...side.children].filter((part) => !charts.some((chart) => part.contains(chart.frame.el)));
    const above = others.reduce((sum, part) => sum + part.offsetHeight, 0);
    return Math.max(LOW, (pictures.offsetHeight - above) / charts.length - GAP / 2);
  }
}
