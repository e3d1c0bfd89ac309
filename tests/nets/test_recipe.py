"""Schedules: what is supervised when, and how fast it is learned."""

from hypothesis import given
from hypothesis import strategies as st

from candor.nets.recipe import TrainingSettings, in_whole_batches

settings = st.builds(
    TrainingSettings,
    warm_up=st.integers(0, 5),
    curriculum=st.integers(0, 9),
    period=st.integers(1, 4),
    milestones=st.lists(st.integers(0, 30), max_size=4).map(tuple),
    activation=st.integers(0, 20),
)


@given(settings, st.integers(1, 40))
def test_prefixes_grow_from_the_warm_up_on_and_reach_the_whole_horizon(chosen: TrainingSettings, horizon: int) -> None:
    after = [chosen.prefix(epoch, horizon) for epoch in range(chosen.warm_up, chosen.warm_up + 200)]
    assert all(1 <= prefix <= horizon for prefix in after)
    assert after == sorted(after)
    assert after[-1] == horizon
    assert all(chosen.prefix(epoch, horizon) == horizon for epoch in range(chosen.warm_up))
    if chosen.curriculum:
        assert after[0] == min(horizon, chosen.curriculum)
        assert after[chosen.period] == min(horizon, 2 * chosen.curriculum)


@given(settings)
def test_rates_halve_at_every_milestone(chosen: TrainingSettings) -> None:
    rates = [chosen.rate(epoch) for epoch in range(40)]
    assert rates[-1] == chosen.learning_rate * 0.5 ** len(chosen.milestones)
    for epoch in range(1, 40):
        assert rates[epoch] == rates[epoch - 1] * 0.5 ** chosen.milestones.count(epoch)


@given(st.integers(1, 200))
def test_along_a_cosine_rates_fall_from_the_first_to_none(epochs: int) -> None:
    chosen = TrainingSettings(epochs=epochs, schedule="cosine", milestones=(1, 2), learning_rate=0.1)
    rates = [chosen.rate(epoch) for epoch in range(epochs + 1)]
    assert rates[0] == 0.1 and abs(rates[-1]) < 1e-12 and rates == sorted(rates, reverse=True)
    for epoch in range(epochs + 1):
        assert abs(rates[epoch] + rates[epochs - epoch] - 0.1) < 1e-12  # half of it in the middle
    assert abs(chosen.in_epochs(2 * epochs, 12).rate(epochs) - 0.05) < 1e-12


@given(settings, st.integers(1, 80), st.integers(1, 240))
def test_schedules_in_other_epochs_learn_the_whole_horizon_and_end_at_the_same_rate(
    chosen: TrainingSettings, epochs: int, horizon: int
) -> None:
    other = chosen.in_epochs(epochs, horizon)
    assert other.epochs == epochs and other.prefix(epochs - 1, horizon) == horizon
    assert other.rate(10_000) == chosen.rate(10_000)
    assert list(other.milestones) == sorted(other.milestones)
    assert (other.activation > 0) == (chosen.activation > 0 and epochs > 1)
    assert other.activation < max(1, epochs)


@given(settings)
def test_waiting_terms_count_from_the_activation_epoch_on(chosen: TrainingSettings) -> None:
    assert [chosen.is_active(epoch) for epoch in range(30)] == [epoch >= chosen.activation for epoch in range(30)]


@given(settings, st.integers(1, 60), st.integers(1, 5000), st.integers(1, 200_000), st.integers(1, 40))
def test_a_shortened_training_fits_in_and_keeps_the_order_of_its_schedules(
    chosen: TrainingSettings, epochs: int, windows: int, affordable: int, horizon: int
) -> None:
    whole = chosen.model_copy(update={"epochs": epochs})
    short = whole.within(windows, affordable, horizon)
    if short == whole:
        assert 0.8 * affordable >= epochs * windows - 1
        return
    assert short.epochs <= epochs and short.epoch_windows is not None
    fewest = min(windows, short.batch)  # an epoch has at least one batch
    # Batches shrink, down to a size that is still quick, as far as it takes to make a thousand steps.
    assert short.batch <= whole.batch and (short.batch <= 16 or short.batch * 1000 <= affordable)
    assert short.batch == whole.batch or short.batch == 16 or (short.batch + 1) * 1000 > 0.8 * affordable - 1
    assert short.epochs * short.epoch_windows <= max(affordable, short.epochs * fewest)
    assert short.prefix(short.epochs - 1, horizon) == horizon
    assert len(short.milestones) == len(whole.milestones)
    assert all(milestone <= short.epochs * max(1, max(whole.milestones) / epochs) + 1 for milestone in short.milestones)


def test_a_shortened_training_takes_and_judges_no_more_windows_than_were_asked_for() -> None:
    asked = TrainingSettings(epochs=10, batch=16, epoch_windows=100, validation_windows=5)
    short = asked.within(10_000, 1126, 12)  # 900 of them to learn from
    assert (short.epochs, short.epoch_windows, short.validation_windows) == (9, 100, 5)


@given(st.integers(0, 500), st.integers(1, 70), st.integers(1, 400))
def test_an_epoch_of_a_part_of_the_windows_has_no_small_batch(wanted: int, size: int, there: int) -> None:
    taken = in_whole_batches(wanted, size, there)
    assert min(size, there) <= taken <= there
    assert taken == there or (taken % size == 0 and taken <= max(wanted, size) < taken + size)
