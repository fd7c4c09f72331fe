"""Settings of Sphinx for the documentation site; docs/_site.py stages the pages."""

from __future__ import annotations

from importlib.metadata import version as version_of

project = "tilewright"
version = release = version_of("tilewright")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

# Anchors as on the pages in the repository: `## One heading` is `#one-heading`.
myst_heading_anchors = 6
# `{.class}` after an image, for the pictures of dark mode.
myst_enable_extensions = ["attrs_inline"]

# Docstrings are Markdown as far as they have markup: text between backticks is code.
default_role = "code"
autodoc_typehints = "description"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = "tilewright"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_show_sphinx = False
# The summary of a result is fetched, and a browser fetches nothing for a page from disk.
html_show_search_summary = False
# Both modes have colours with enough contrast.
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
