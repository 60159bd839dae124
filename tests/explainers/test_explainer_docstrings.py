"""Everything public is documented; that the examples run is tested with all doctests."""

import pytest

import fastpd_sklearn.explainers as package


@pytest.mark.parametrize("name", package.__all__)
def test_public_objects_are_documented(name):
    public = getattr(package, name)
    assert public.__doc__
    for attribute, value in vars(public).items():
        if not attribute.startswith("_") and callable(value):
            assert value.__doc__, attribute
