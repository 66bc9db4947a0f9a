"""Sphinx configuration."""

import re
from importlib.metadata import version as installed_version
from pathlib import Path

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

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
    "ignore_pattern": r"demo\.py",  # what make demo runs; it draws in plain text
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("regimix",),
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 60,
    "thumbnail_size": (480, 336),
    "write_computation_times": False,
    "copyfile_regex": r".*GALLERY_HEADER\.rst",
}

html_theme = "pydata_sphinx_theme"
html_title = "regimix"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_math_renderer = "mathml"
toc_object_entries_show_parents = "hide"
html_theme_options = {
    "show_prev_next": True,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        **{name: [] for name in ("api", "index", "paper", "project", "research")},
    },
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}


RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
# Pages that end with what a benchmark wrote, and the command that writes it.
MEASURED = {
    "speed": ("speed.md", "make bench"),
    "recovery": ("recovery.md", "make bench-recovery"),
    "why": ("compare.md", "python -m benchmarks.compare"),
}


# A table of more rows is folded: one line to click on.
LONGEST_TABLE = 14
TABLE = re.compile(
    r"(?:^(?P<title>[^|\n#`][^|\n]*):\n\n)?(?P<table>^\|(?:.*\n)(?:\|.*\n)+)", re.MULTILINE
)


def add_results(_app, page, source):
    """End the pages of the benchmarks with what was measured, if it was."""
    if page not in MEASURED:
        return
    name, command = MEASURED[page]
    if (RESULTS / name).exists():
        text = (RESULTS / name).read_text(encoding="utf-8")
        # Pictures stand on the pages that explain them.
        text = re.sub(r"^!\[.*\)\n", "", text, flags=re.MULTILINE)
        source[0] += TABLE.sub(folded, text)
    else:
        source[0] += f"No table yet: run `{command}`, then `make docs`.\n"


def folded(found):
    """Fold a long table of Markdown, under its title if it has one."""
    rows = found["table"].count("\n") - 2
    if rows <= LONGEST_TABLE:
        return found[0]
    title = found["title"] or "Table"
    return f"<details><summary>{title} ({rows} rows)</summary>\n\n{found['table']}\n</details>\n"


def math(as_block):
    """Return a visitor that writes formulas as MathML, which browsers draw without a script."""

    def visit(writer, node):
        writer.body.append(tex2mathml(node.astext(), as_block=as_block))
        raise SkipNode

    return visit, None


def setup(app):
    """Register the hook and the formulas."""
    app.connect("source-read", add_results)
    app.add_html_math_renderer("mathml", inline_renderers=math(False), block_renderers=math(True))
