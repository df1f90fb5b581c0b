"""The compiled part of likewise: the branch and bound over relu networks. All else is in pyproject.toml."""

from glob import glob

from pybind11.setup_helpers import Pybind11Extension
from setuptools import setup

setup(
    ext_modules=[
        Pybind11Extension(
            "likewise.search._kernel",
            ["src/kernel/module.cpp"],
            include_dirs=["src/kernel"],
            depends=[*glob("src/kernel/*.hpp")],
            cxx_std=17,
            optional=True,  # without a compiler Python grows the trees, and says so
            extra_compile_args=["-O3"],
            extra_link_args=["-pthread"],
        )
    ]
)
