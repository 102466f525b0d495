// Halos before and after, matched by their members: the definitions of `workbench/clusters/matching.py`.

export const [INTACT, SPLIT, MERGED] = [0, 1, 2];

// The groups of at least so many members, the largest first (the smaller label first among equals), with their members.
export function halosOf(labels, least) {
  const sizes = new Int32Array(labels.length);
  for (const label of labels) sizes[label] += 1;
  const large = [...sizes.keys()].filter((label) => sizes[label] >= least).sort((a, b) => sizes[b] - sizes[a] || a - b);
  const places = new Map(large.map((label, place) => [label, place]));
  const first = new Int32Array(large.length + 1);
  large.forEach((label, place) => (first[place + 1] = first[place] + sizes[label]));
  const [members, next] = [new Int32Array(first[large.length]), first.slice()];
  labels.forEach((label, particle) => {
    if (sizes[label] >= least) members[next[places.get(label)]++] = particle;
  });
  return { labels: large, first, members };
}

// The status of each halo after a change of labels, and which match no halo: they are lost.
export function matched(halos, labels, least) {
  const { first, members } = halos;
  const [sizes, shared] = [new Int32Array(labels.length), new Int32Array(labels.length)];
  for (const label of labels) sizes[label] += 1;
  const owners = new Map(); // of each group: the halo that contributes most members, and how many
  const counterparts = halos.labels.map((halo, place) => {
    const own = members.subarray(first[place], first[place + 1]);
    const others = new Set();
    for (const particle of own) {
      shared[labels[particle]] += 1;
      others.add(labels[particle]);
    }
    let best = -1;
    for (const other of others) {
      const most = best < 0 ? 0 : shared[best];
      if (shared[other] > most || (shared[other] === most && other < best)) best = other;
      const [owner, part] = owners.get(other) ?? [halo, 0];
      if (shared[other] > part || (shared[other] === part && halo < owner)) owners.set(other, [halo, shared[other]]);
    }
    const kept = shared[best];
    for (const other of others) shared[other] = 0;
    return [best, kept, own.length];
  });
  const statusOf = ([best, kept, size]) => (kept < size ? SPLIT : kept === sizes[best] ? INTACT : MERGED);
  const status = Uint8Array.from(counterparts, statusOf);
  const lost = counterparts.map(([best], place) => sizes[best] < least || owners.get(best)[0] !== halos.labels[place]);
  return { status, lost };
}
