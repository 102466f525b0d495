// Marks over a picture: how they are drawn, which one is under the pointer, and in which order keys go through them.

const SMALLEST = 3; // pixels: the radius of a circle that would be smaller
const RIM = 3; // pixels beyond a circle that still belong to it
const REACH = 5; // pixels around lines and points that still belong to them
const COLUMNS = { circles: 3, lines: 4, points: 2, boxes: 4 };

export function marksOf(sent) {
  const copied = (data) => data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
  return sent.map((mark) => ({
    ...mark,
    places: new Float32Array(copied(mark.places)),
    ids: mark.ids && new Int32Array(copied(mark.ids)),
    gaps: mark.dash ? mark.dash.split(" ").map(Number) : [],
  }));
}

export const titleOf = (mark, number) => mark.titles?.[number] ?? `${mark.label} ${mark.ids[number]}`;

const placeOf = (mark, number) => mark.places.subarray(number * COLUMNS[mark.shape], (number + 1) * COLUMNS[mark.shape]);

const radiusOf = (mark, number, placing) => Math.max(SMALLEST, placeOf(mark, number)[2] * placing.scale);

function middleOf(mark, number, placing) {
  const place = placeOf(mark, number);
  if (mark.shape === "lines") return [placing.x((place[0] + place[2]) / 2), placing.y((place[1] + place[3]) / 2)];
  if (mark.shape === "boxes") return [placing.x((place[0] + place[1]) / 2), placing.y((place[2] + place[3]) / 2)];
  return [placing.x(place[0]), placing.y(place[1])];
}

function distanceTo(mark, number, placing, px, py) {
  if (mark.shape !== "lines") {
    const [x, y] = middleOf(mark, number, placing);
    return Math.hypot(x - px, y - py) - (mark.shape === "points" ? mark.width : 0);
  }
  const [x0, y0, x1, y1] = placeOf(mark, number);
  const [ax, ay, bx, by] = [placing.x(x0), placing.y(y0), placing.x(x1), placing.y(y1)];
  const square = (bx - ax) ** 2 + (by - ay) ** 2;
  const share = square ? Math.min(1, Math.max(0, ((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / square)) : 0;
  return Math.hypot(ax + share * (bx - ax) - px, ay + share * (by - ay) - py);
}

// The line or point next to the pointer, or else the smallest circle with the pointer inside or on its rim.
export function hit(marks, placing, px, py) {
  let thin = null;
  let round = null;
  for (const mark of marks) {
    for (let number = 0; number < (mark.ids?.length ?? 0); number++) {
      const shape = { mark, number, id: mark.ids[number], label: mark.label, title: titleOf(mark, number) };
      if (mark.shape === "circles") {
        const [x, y] = middleOf(mark, number, placing);
        const away = Math.hypot(x - px, y - py);
        const radius = radiusOf(mark, number, placing);
        const smaller = !round || radius < round.radius || (radius === round.radius && away < round.away);
        if (away <= radius + RIM && smaller) round = { ...shape, radius, away };
      } else {
        const away = distanceTo(mark, number, placing, px, py);
        if (away <= REACH && (!thin || away < thin.away)) thin = { ...shape, away };
      }
    }
  }
  return thin ?? round;
}

// All marks in sight that can be picked: circles from the largest to the smallest, then the others.
export function inOrder(marks, placing, width, height) {
  const marked = [];
  for (const mark of marks) {
    for (let number = 0; number < (mark.ids?.length ?? 0); number++) {
      const [x, y] = middleOf(mark, number, placing);
      const size = mark.shape === "circles" ? radiusOf(mark, number, placing) : 0;
      const same = ({ id, label }) => id === mark.ids[number] && label === mark.label;
      if (x < 0 || y < 0 || x > width || y > height || (!size && marked.some(same))) continue;
      marked.push({ mark, number, id: mark.ids[number], label: mark.label, title: titleOf(mark, number), size });
    }
  }
  return marked.sort((one, other) => other.size - one.size);
}

export function outline(context, { mark, number }, placing) {
  const [x, y] = middleOf(mark, number, placing);
  const radius = (mark.shape === "circles" ? radiusOf(mark, number, placing) : 6) + 4;
  const path = new Path2D();
  path.arc(x, y, radius, 0, 2 * Math.PI);
  context.setLineDash([]);
  for (const [colour, width] of [["#000", 6], ["#fff", 3]]) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke(path);
  }
}

export function paintMark(context, mark, placing) {
  const { globalAlpha } = context;
  context.globalAlpha = globalAlpha * mark.opacity;
  drawMark(context, mark, placing);
  context.globalAlpha = globalAlpha;
}

function drawMark(context, mark, placing) {
  const path = new Path2D();
  const { places } = mark;
  for (let i = 0; i < places.length; i += COLUMNS[mark.shape]) {
    if (mark.shape === "lines") {
      path.moveTo(placing.x(places[i]), placing.y(places[i + 1]));
      path.lineTo(placing.x(places[i + 2]), placing.y(places[i + 3]));
    } else if (mark.shape === "boxes") {
      const [x, y] = [placing.x(places[i]), placing.y(places[i + 3])];
      path.rect(x, y, placing.scale * (places[i + 1] - places[i]), placing.rise * (places[i + 3] - places[i + 2]));
    } else {
      const [x, y] = [placing.x(places[i]), placing.y(places[i + 1])];
      const radius = mark.shape === "points" ? mark.width : Math.max(SMALLEST, places[i + 2] * placing.scale);
      path.moveTo(x + radius, y);
      path.arc(x, y, radius, 0, 2 * Math.PI);
    }
  }
  const point = mark.shape === "points";
  const filled = point && !mark.gaps.length; // points with a dash are rings
  const width = filled ? 0 : point ? 1.2 : mark.width;
  context.setLineDash(point ? [] : mark.gaps);
  context.strokeStyle = "rgba(0, 0, 0, 0.55)"; // an outline, so that every colour is visible on every background
  context.lineWidth = width + 2;
  context.stroke(path);
  if (filled) {
    context.fillStyle = mark.colour;
    context.fill(path);
    return;
  }
  context.strokeStyle = mark.colour;
  context.lineWidth = width;
  context.stroke(path);
  context.setLineDash([]);
}

// A sample of a mark for a legend.
export function paintSample(context, mark, width, height) {
  const middle = height / 2;
  if (mark.shape === "points") {
    context.beginPath();
    context.arc(width / 2, middle, 3, 0, 2 * Math.PI);
    context.fillStyle = context.strokeStyle = mark.colour;
    context.lineWidth = 1.5;
    if (mark.gaps.length) context.stroke();
    else context.fill();
    return;
  }
  context.setLineDash(mark.gaps);
  context.strokeStyle = mark.colour;
  context.lineWidth = Math.max(1.5, mark.width);
  context.beginPath();
  context.moveTo(1, middle);
  context.lineTo(width - 1, middle);
  context.stroke();
  context.setLineDash([]);
}
