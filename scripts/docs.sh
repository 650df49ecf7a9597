#!/bin/sh
# Makes the documentation as a site, build/docs/site: the pages by mkdocs-material, the reference of the public
# headers by doxygen. A link that leads nowhere and a declaration without words are errors.
. "$(dirname -- "$0")/common.sh"
[ $# = 0 ] || fail "unknown word '$1'; accepted: none"
install_packages python3 python3-venv doxygen || fail "the packages could not be installed"
make_venv "[docs]" || fail "the tools could not be installed in .venv"
.venv/bin/python scripts/docs/stage.py build/docs/pages || fail "the pages could not be gathered"
NUMALLOC_DOCS_OUTPUT=build/docs/pages doxygen scripts/docs/Doxyfile || fail "doxygen found something to mend in include/numalloc"
NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --strict -f scripts/docs/mkdocs.yml || fail "mkdocs found something to mend in the pages"
say "build/docs/site/index.html is written"
