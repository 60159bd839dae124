"""How Sphinx builds the documentation: ``sphinx-build -W doc doc/_build/html``."""

from pathlib import Path

import fastpd_sklearn

HERE = Path(__file__).parent

project = "fastpd-sklearn"
author = "the fastpd-sklearn developers"
copyright = "the fastpd-sklearn developers"
version = release = fastpd_sklearn.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "gallery/**.ipynb", "gallery/**.py", "gallery/**.zip"]
templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = project
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
}

# A class has a page of its own, whose template lists its methods.
autosummary_generate = True
numpydoc_show_class_members = False
autodoc_typehints = "none"

# Every script is run: what a page of the gallery shows is what the code does today.
sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 60,
    "matplotlib_animations": False,
    "copyfile_regex": r".*\.csv",
}
