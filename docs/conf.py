"""Sphinx configuration."""

from importlib.metadata import version as installed_version
from pathlib import Path

project = "regimix"
author = "The regimix developers"
copyright = "2026, the regimix developers"
version = release = installed_version("regimix")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = True

# API pages: one per name, written from the docstrings.
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("regimix",),
    "reference_url": {"regimix": None},
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 60,
    "write_computation_times": False,
    "copyfile_regex": r".*GALLERY_HEADER\.rst",
}

html_theme = "pydata_sphinx_theme"
html_title = "regimix"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        **{name: [] for name in ("api", "benchmarks", "index", "paper")},
    },
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {
    name: [] for name in ("index", "start", "architecture", "paper", "benchmarks", "changelog")
}


SPEED_TABLE = Path(__file__).parent.parent / "benchmarks" / "results" / "speed.md"


def add_speed_table(_app, page, source):
    """End the benchmarks page with what `make bench` wrote, if it has run."""
    if page != "benchmarks":
        return
    if SPEED_TABLE.exists():
        source[0] += SPEED_TABLE.read_text(encoding="utf-8")
    else:
        source[0] += "No table yet: run `make bench`, then `make docs`.\n"


def setup(app):
    """Register the hook."""
    app.connect("source-read", add_speed_table)
