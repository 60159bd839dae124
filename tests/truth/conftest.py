"""Makes the tests' own forests known to the explainers."""

import pytest

from fastpd_sklearn.forest import _registry


@pytest.fixture(autouse=True, scope="module")
def _toy_reader():
    specs = {**_registry._reader_specs(), "tests": "tests.truth.toys:reader"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_registry, "_reader_specs", lambda: specs)
        yield
