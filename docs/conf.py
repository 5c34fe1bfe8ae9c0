"""The site: `make docs` builds it, and fails at the first broken link or undocumented name."""

import os
from importlib.metadata import version as version_of
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # the same numbers on any machine

project = "adance"
author = "the adance developers"
copyright = author
version = release = version_of("adance")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinx_llms_txt",
]
exclude_patterns = ["_build", "gallery/**.py", "gallery/**.ipynb"]
suppress_warnings = ["config.cache"]

html_theme = "furo"
html_title = f"adance {version}"
html_copy_source = True  # llms.txt is made of the sources
html_static_path = ["_static"]
html_css_files = ["adance.css"]
pygments_dark_style = "github-dark"

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    "imported-members": True,
    "show-inheritance": True,
    "exclude-members": "set_fit_request, set_predict_request, set_score_request",  # scikit-learn's own
}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

EXAMPLES = Path(__file__).parents[1] / "examples"
sphinx_gallery_conf = {
    "examples_dirs": str(EXAMPLES),
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "min_reported_time": 0,
    "show_memory": False,
    "remove_config_comments": True,
    "write_computation_times": False,
    "abort_on_example_error": True,
}
