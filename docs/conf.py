"""The site of deep: Sphinx, MyST, numpydoc and sphinx-gallery, as scikit-learn has them."""

import sys
from pathlib import Path

import deep

sys.path.insert(0, str(Path(__file__).parent / "_site"))

project = "deep"
author = "The authors of deep"
copyright = "The authors of deep, Apache-2.0"  # noqa: A001
version = release = deep.__version__

extensions = [
    "commands",
    "interface",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_llms_txt",
]
exclude_patterns = [
    "_site",
    "gallery/*.md5",
    "gallery/*.ipynb",
    "gallery/*.py",
    "gallery/*.zip",
    "sg_execution_times.rst",
]
html_theme = "furo"
html_title = "deep"
html_static_path = ["static"]
html_js_files = ["accessible.js"]
html_theme_options = {"navigation_with_keys": True}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": "/plot_",
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "show_memory": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 1000,
}
