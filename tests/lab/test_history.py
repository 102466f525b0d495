"""What is a step to go back to, and what is not."""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.lab.history import MOST, History


@dataclass(frozen=True)
class State:
    bound: float = 1.0
    window: tuple[float, ...] | None = None
    chosen: int | None = None
    pixels: int = 512


class Walk:
    """A state that changes, with its history."""

    def __init__(self) -> None:
        self.state, self.history = State(), History[State]({"pixels"}, {"window", "chosen"})

    def change(self, movement: object = None, **fields: object) -> None:
        before, self.state = self.state, replace(self.state, **fields)   # type: ignore[arg-type]
        self.history.note(before, self.state, movement)

    def back(self) -> State | None:
        return self._to(self.history.back(self.state))

    def forth(self) -> State | None:
        return self._to(self.history.forth(self.state))

    def _to(self, state: State | None) -> State | None:
        self.state = self.state if state is None else state
        return state


def test_each_change_is_a_step_back_and_forth() -> None:
    walk = Walk()
    for bound in (2.0, 3.0):
        walk.change(bound=bound)
    assert [walk.back(), walk.back(), walk.back()] == [State(2.0), State(1.0), None]
    assert [walk.forth(), walk.forth(), walk.forth()] == [State(2.0), State(3.0), None]


def test_a_movement_is_one_step() -> None:
    walk = Walk()
    for movement in ("first", "second"):
        for _ in range(5):
            walk.change(movement, bound=walk.state.bound + 1)
    assert [walk.back(), walk.back(), walk.back()] == [State(6.0), State(1.0), None]


def test_looking_around_is_one_step_and_picking_halos_another() -> None:
    walk = Walk()
    walk.change(bound=2.0)
    for right in (4.0, 3.0, 2.0):
        walk.change(window=(0.0, right, 0.0, right))
    for halo in (5, 6, 7):
        walk.change(chosen=halo)
    looked = State(2.0, (0.0, 2.0, 0.0, 2.0))
    assert [walk.back(), walk.back(), walk.back(), walk.back()] == [looked, State(2.0), State(1.0), None]


def test_the_size_of_the_screen_is_no_choice() -> None:
    walk = Walk()
    walk.change(bound=2.0)
    walk.change(pixels=1024)
    assert walk.back() == State(1.0, pixels=1024)


def test_a_change_after_going_back_leaves_nothing_to_redo() -> None:
    walk = Walk()
    walk.change("one", bound=2.0)
    walk.back()
    walk.change("one", bound=3.0)   # a step of its own, although it goes on with the same movement
    assert walk.history.ends == (True, False)
    assert walk.back() == State(1.0)


def test_the_oldest_steps_are_forgotten() -> None:
    walk = Walk()
    for bound in range(2, MOST + 52):
        walk.change(bound=float(bound))
    steps = 0
    while walk.back() is not None:
        steps += 1
    assert steps == MOST
