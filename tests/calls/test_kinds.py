"""Every kind of training, on workers that divide the calls of its models, equals what one process trains.

One process without tfdp is the reference, with the same entropy for what is not seeded; kinds of a number of workers
share a launch. `make test` runs a sample of them on two workers, `make calls` all on two and three.
"""

from pathlib import Path

import pytest
from calls.judge import differences, wrong
from calls.launches import ENTROPY, keras_version, kinds, trained

LAUNCHED = pytest.StashKey[dict]()
KINDS = kinds()
SAMPLED_RANKS = (2,)


def pairs():
    """(kind, number of workers): 1 is a process that has joined a job of one, where nothing at all may change."""
    for ranks in (2, 3, 1):
        for kind in KINDS:
            sampled = kind.sample and ranks in SAMPLED_RANKS
            yield pytest.param(kind, ranks, id=f"{kind.name}-{ranks}", marks=pytest.mark.sample if sampled else ())


@pytest.fixture(scope="session")
def launches(request):
    """Outcomes of all kinds that are selected, by the number of workers; those of the reference by 0."""
    asked = [(item.callspec.params["kind"], item.callspec.params["ranks"]) for item in selected(request.session)]
    known = {}

    def outcomes(ranks):
        if ranks not in known:
            wanted = [kind for kind in KINDS if any(each == kind and ranks in (0, on) for each, on in asked)]
            known[ranks] = trained(wanted, max(1, ranks), calls=ranks > 0)
        return known[ranks]

    return outcomes


def selected(session):
    return [item for item in session.items if item.path == Path(__file__) and item.originalname == test_kind.__name__]


@pytest.mark.timeout(1800)  # the first of a number of workers has the time of them all
@pytest.mark.parametrize(("kind", "ranks"), list(pairs()))
def test_kind(kind, ranks, launches):
    if kind.keras > keras_version():
        pytest.skip(f"needs Keras {kind.keras}")
    assert not (said := wrong(kind, launches(0)[kind.name], launches(ranks)[kind.name], alone=ranks == 1)), said


@pytest.mark.sample
@pytest.mark.timeout(1800)
def test_what_is_not_seeded_is_equal_on_all_workers(launches):
    workers = launches(SAMPLED_RANKS[0])[ENTROPY.name].ranks
    assert workers
    assert not [found for said in workers for found in differences(workers[0].arrays, said.arrays, 0.0)]
