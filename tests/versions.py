"""Which releases of the libraries the tests run with."""

from importlib.metadata import version

from packaging.version import Version


def older(package: str, than: str) -> bool:
    """Whether the installed package is older than a release."""
    return Version(version(package)) < Version(than)
