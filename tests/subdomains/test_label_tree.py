"""Labels merged as a tree are those that one merging of all pairs gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.run.executors import InProcess
from workbench.subdomains import label_tree
from workbench.subdomains.label_tree import LabelTree
from workbench.subdomains.merging import different, roots


@given(data=st.data())
def test_any_labels_of_any_subdomains(tmp_path_factory, data):
    """Particles that several subdomains know, with any labels there that are not greater than their index."""
    members, parts = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 20))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    count, shared = data.draw(st.integers(1, 60)), data.draw(st.integers(0, 60))
    owner = random.integers(parts, size=count)
    holds = {part: set(np.flatnonzero(owner == part).tolist()) for part in range(parts)}
    for particle, part in zip(random.integers(count, size=shared), random.integers(parts, size=shared), strict=True):
        holds[int(part)].add(int(particle))
    label = {}   # by subdomain and particle: groups of one subdomain are named by their smallest index there
    for part, held in holds.items():
        held = np.array(sorted(held), np.int64)
        group = random.integers(max(len(held) // 2, 1), size=len(held))
        _, first, which = np.unique(group, return_index=True, return_inverse=True)
        label |= {(part, int(particle)): int(name) for particle, name in zip(held, held[first[which]], strict=True)}
    folder = tmp_path_factory.mktemp("tree")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(label_tree, "MEMBERS", members)
        tree, every = LabelTree(folder, parts), [np.empty((0, 2), np.int64)]
        for part in range(parts):
            ghosts = [(name, owner[particle]) for (other, particle), name in label.items()
                      if other == part and owner[particle] != part]
            lent = [(name, label[part, particle], other) for (other, particle), name in label.items()
                    if other != part and owner[particle] == part]
            theirs, here, others = np.array(lent, np.int64).reshape(-1, 3).T
            own, owners = np.array(ghosts, np.int64).reshape(-1, 2).T
            every.append(different(theirs, here))
            known = np.concatenate([theirs, here, own]), np.concatenate([others, others, owners])
            owned = [name for (other, particle), name in label.items() if other == part and owner[particle] == part]
            members = np.bincount(np.array(owned, np.int64), minlength=count)
            tree.enter(part, every[-1], known[0], tree.heights(part, known[1]), members.__getitem__)
        tree.merge(InProcess())
        final = roots(count, np.concatenate(every))
        own = np.array([label[part, particle] for particle, part in enumerate(owner.tolist())])
        sizes = np.bincount(final[own], minlength=count)
        for (part, _), name in label.items():
            names, known = np.array([name]), tree.known(part)
            assert tree.renaming(part).applied(names) == final[names]
            assert known.members.tolist() == sizes[known.final].tolist()


def test_a_block_passes_on_only_what_others_know(tmp_path):
    """64 subdomains in a row, each with a group that only its neighbour knows: nothing leaves the block but at its ends."""
    tree = LabelTree(tmp_path, 128)
    for part in range(128):
        labels = np.array([part, part + 1])
        tree.enter(part, labels[None] if part < 127 else labels[:0].reshape(0, 2), labels,
                   tree.heights(part, np.array([max(part - 1, 0), min(part + 1, 127)])))
    tree.merge_block((1, 0))
    tree.merge_block((1, 1))
    assert [len(tree._pieces(1, block, (label_tree.KNOWN,))[0]) for block in (0, 1)] == [2, 1]
    tree.merge(InProcess())
    assert {int(tree.renaming(part).applied(np.array([part]))[0]) for part in range(127)} == {0}
