"""What holds for every test.

Properties run in one of two ways. "fixed", the default: the same examples every time and for
everybody, so that `make test` says of a commit what it said before. "fuzz": fresh random examples,
and more of them, which is how `make fuzz` looks for what nobody has thought of. Simulations, which
count how often something holds, likewise: one seed for everybody, or a fresh one.
"""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers

from regimix.search import loop
from regimix.search.numbers import SEARCH
from tests.slow import LIST, is_slow

# Tests never assert time: a busy machine must not make a property fail. Nothing is remembered
# between runs: what failed here yesterday must not fail here alone.
common = settings(
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("fixed", common, derandomize=True)
settings.register_profile("fuzz", common, derandomize=False)
settings.load_profile("fixed")

# Examples under "fuzz" for each one under "fixed".
FUZZ_TIMES = 10

# Hypothesis also tries constants that it reads in the modules loaded so far. Which ones these are
# depends on what the worker ran before and on the folder of the clone, so it is given none.
providers._get_local_constants = lambda: providers._local_constants


# A shell that starts the tests in the background lets them ignore Ctrl-C, which some of them send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SLOW_TESTS = frozenset(LIST.read_text(encoding="utf-8").split())


@pytest.fixture
def searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search a table once, as large ones are, in tests of what follows from a fit.

    Small tables are searched until searches agree, and then for one regime more, which takes four
    fifths of the time of their fits. Fixtures that several tests share are searched as ever.
    """
    search_once(monkeypatch)


@pytest.fixture(scope="module")
def module_searched_once() -> Iterator[None]:
    """The same for the shared fixtures of a module too: let them ask for it."""
    with pytest.MonkeyPatch.context() as patch:
        search_once(patch)
        yield


def search_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loop, "SEARCH", replace(SEARCH, most_searches=1))


@pytest.fixture
def base_seed(request: pytest.FixtureRequest) -> int:
    """Seed of a simulation: always the same, but under "fuzz" that of the run or a fresh one."""
    if not settings.get_current_profile_name().startswith("fuzz"):
        return 0
    given = request.config.getoption("--hypothesis-seed")
    return int.from_bytes(os.urandom(4), "big") if given is None else int(given)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests and simulations, and let properties try more examples under "fuzz"."""
    for item in items:
        if is_slow(item.nodeid, SLOW_TESTS):
            item.add_marker("slow")
        if "base_seed" in getattr(item, "fixturenames", ()):
            item.add_marker("simulation")
    if not settings.get_current_profile_name().startswith("fuzz"):
        return
    # The cases of a parametrised test share one function.
    functions = {id(item.obj): item.obj for item in items if is_property(item)}
    for function in functions.values():
        asked = function._hypothesis_internal_use_settings
        function._hypothesis_internal_use_settings = settings(
            asked, max_examples=FUZZ_TIMES * asked.max_examples
        )


def is_property(item: pytest.Item) -> bool:
    """Say whether Hypothesis chooses the arguments of a test."""
    return is_hypothesis_test(getattr(item, "obj", None))
