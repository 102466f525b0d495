// What widgets can be.

export { cloud } from "./cloud.js";
export { panel, part } from "./page.js";
