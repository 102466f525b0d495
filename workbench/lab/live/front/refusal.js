// What the page cannot take, in a sentence for its reader.

export class Refused extends Error {}
