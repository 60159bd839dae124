"""Which releases of the libraries the tests run with."""

from importlib.metadata import version

from packaging.version import Version


def older(package: str, than: str) -> bool:
    """Whether the installed package is older than a release."""
    return Version(version(package)) < Version(than)


def assert_same_names(found, expected) -> None:
    """But for columns without names, to which LightGBM before 4.7 gives names of its own."""
    assert [n.replace("Column_", "x") for n in found] == [
        n.replace("Column_", "x") for n in expected
    ]
