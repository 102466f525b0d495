// The ticks of all charts and pictures in a browser, as in ticks.py: a few round values with short texts.

export function ticksBetween(low, high, logarithmic = false, most = 6) {
  if (logarithmic) {
    const [first, last] = [Math.floor(Math.log10(low)), Math.floor(Math.log10(high)) + 1];
    const every = Math.ceil((last - first) / most);
    let marks = [];
    for (const factors of [[1, 2, 5], [1, 3], [1]]) {
      marks = [];
      for (let power = first; power <= last; power++) {
        if (factors.length > 1 || power % every === 0) marks.push(...factors.map((factor) => Number(`${factor}e${power}`)));
      }
      marks = marks.filter((mark) => low * (1 - 1e-9) <= mark && mark <= high * (1 + 1e-9));
      if (marks.length <= most) break;
    }
    if (marks.length > 2) return marks;
  }
  const step = roundStep((high - low) / most);
  const marks = [];
  for (let number = Math.ceil(low / step - 1e-9); number <= Math.floor(high / step + 1e-9); number++) {
    marks.push(Number((number * step).toPrecision(15)));
  }
  return marks;
}

export function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((factor) => factor * power >= least * (1 - 1e-9)) * power;
}

export function textOf(tick, ticks) {
  const sizes = ticks.filter((mark) => mark).map(Math.abs);
  const steps = ticks.slice(1).map((mark, place) => Math.abs(mark - ticks[place])).filter((step) => step);
  const smallest = steps.length ? Math.min(...steps, ...sizes) : Math.min(...sizes.map((size) => size / 1000), 1);
  const least = Math.floor(Math.log10(smallest) + 1e-9);
  const written = (mark, decimals) => String(Number(mark.toFixed(decimals))).replace("-", "\u2212");
  if (!tick || sizes.every((size) => 1e-4 <= size && size < 1e6)) return written(tick, Math.max(-least, 0));
  const power = Math.floor(Math.log10(Math.abs(tick)) + 1e-9);
  const factor = written(tick / 10 ** power, Math.min(Math.max(power - least, 0), 14));
  const raised = [...String(power)].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("");
  return ({ 1: "", "\u22121": "\u2212" }[factor] ?? `${factor} · `) + `10${raised}`;
}
