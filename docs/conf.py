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
        **{name: [] for name in ("api", "benchmarks", "index", "paper", "recovery")},
    },
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {
    name: []
    for name in (
        "index",
        "start",
        "cli",
        "inference",
        "gating",
        "plots",
        "report",
        "files",
        "scale",
        "method",
        "architecture",
        "benchmarks",
        "recovery",
        "changelog",
    )
}


RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
# Pages that end with what a benchmark wrote, and the command that writes it.
MEASURED = {
    "benchmarks": ("speed.md", "make bench"),
    "recovery": ("recovery.md", "make bench-recovery"),
}


def add_results(_app, page, source):
    """End the pages of the benchmarks with what was measured, if it was."""
    if page not in MEASURED:
        return
    name, command = MEASURED[page]
    if (RESULTS / name).exists():
        text = (RESULTS / name).read_text(encoding="utf-8")
        # Pictures lie beside the results.
        for pictures in ("](recovery-", "](speed-"):
            text = text.replace(pictures, pictures.replace("](", "](../benchmarks/results/"))
        source[0] += text
    else:
        source[0] += f"No table yet: run `{command}`, then `make docs`.\n"


def setup(app):
    """Register the hook."""
    app.connect("source-read", add_results)
